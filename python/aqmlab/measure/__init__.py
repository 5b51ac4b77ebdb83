"""What is measured: one registry of metrics, asked by every command, page and table.

    import aqmlab

    result = aqmlab.Study("study.toml").run()
    aqmlab.measure.values(result, "sojourn_p95")     # run, subject (a link), value
    aqmlab.measure.values(result, "goodput")         # run, subject (a group), value

A metric of one's own is a function: see `metric`. The names and their modules are in
`__init__.pyi`; tables are loaded with the first that needs them.
"""

import lazy_loader

import aqmlab.measure.catalogue  # noqa: F401 (registers what aqmlab measures)

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
