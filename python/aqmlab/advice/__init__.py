"""Advice for an access line: `aqmlab try`.

scenarios.access   lines as data: framing, buffers, shares, devices
loads              traffic at home, as data
setup              scenario of the router: shapers and queues in both directions
commands, tc       Linux commands for the simulated links
trial              study, and the measures that users notice
choice             comparisons, the recommended queue, sentences
page, assertion    pages, JSON, `--assert`
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
