"""Studies: what is run (`sweep`), how (`execute`, on other machines `spread` and `cluster`), for
how long (`sequential`), and what stays of it (`folder`, its `chunks` and `manifest`, `merge`). The
smallest of them is a single run (`single`, in steps `stepping`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
