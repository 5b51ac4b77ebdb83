"""Search: parameters that suit a goal (`tune`), and conditions that hurt most (`attack`)::

    import aqmlab

    found = aqmlab.search.attack(
        "shrew.toml",
        {"flows.attack.workload.fps": "0.3..50,log"},
        hurt="goodput@victim",
        within=["throughput@attack<=2mbit"],
        out="results/shrew",
    )
    print(found.statements, found.finding)

Modules: `keys` (what may vary), `optimisers` (which values come next), `trials` (what they give),
`confirm` (whether that is more than chance), `shrink` (the smallest file that still does it),
`engine` (all of them in order), `page` (the report). The extra `search` installs optuna and cma.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
