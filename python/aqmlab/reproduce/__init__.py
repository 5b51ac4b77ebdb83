"""Published studies again: what was published beside what we measure.

    from aqmlab.reproduce import reproduce

    result = reproduce("jarvinen2014", out="results/jarvinen2014")
    result.write_report("results/jarvinen2014")

A study is a folder; docs/reproductions.md says what is in it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
