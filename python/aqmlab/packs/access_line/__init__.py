"""Access lines: which queue suits the line that you have (`aqmlab try`).

scenarios.access   lines as data: framing, buffers, shares, devices
loads              traffic at home, as data
setup              scenario of the router: shapers and queues in both directions
commands           Linux commands for the simulated links
trial              pack, and the measures that users notice
choice             comparisons, the recommended queue, sentences
page               page and JSON
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
