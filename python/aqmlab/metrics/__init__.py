"""Metrics: one registry, asked by every command, page, study and campaign.

    import aqmlab

    result = aqmlab.Study("study.toml").run()
    aqmlab.metrics.values(result, "sojourn_p95")     # run, subject (a link), value
    aqmlab.metrics.values(result, "goodput")         # run, subject (a group), value

`registry` defines a metric (also a custom one, see `metric`) and `catalogue` declares aqmlab's;
`formulas` and `table` compute those that the engine does not, and `samples` pools distributions.
`__init__.pyi` lists the public names and their modules; tables are loaded at their first use.
"""

import lazy_loader

import aqmlab.metrics.catalogue  # noqa: F401 (registers aqmlab's metrics)

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
