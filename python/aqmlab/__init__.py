"""aqmlab: a laboratory for active queue management.

    import aqmlab

    result = aqmlab.run("scenario.toml", set={"queue.target": "2ms"})
    print(result.links.select("link", "sojourn_p95_s", "utilisation"))

    result = aqmlab.study("study.toml", out="results/mine", threads=2)
    print(result.links)
    result.write_report()

`run`, `study`, `merge`, `compare`, `reproduce`, `characterize`, `evaluate` and `emulate` do what
the commands of the same names do; every deliberate error is an `AqmlabError`.

Importing aqmlab is cheap: the engine, tables and charts are loaded when they are first used. The
names and their modules are in `__init__.pyi`.
"""

import copyreg
import sys
from importlib import import_module

import lazy_loader

_attribute, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

# Modules of lazy_loader's class are pickled by name, as `cloudpickle` (dask, joblib) does others.
copyreg.pickle(type(sys.modules[__name__]), lambda module: (import_module, (module.__name__,)))


def __getattr__(name: str) -> object:
    """Loads an attribute, after `errors`, which makes the engine's exceptions `AqmlabError`s."""
    import aqmlab.errors  # noqa: F401

    return _attribute(name)
