"""Which queue suits the line that somebody has: `aqmlab try`.

A study is made of a line (rates, round-trip time, kind of access), a load (what goes on at home)
and some queues, each at both ends of the line. It says what each user would notice.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
