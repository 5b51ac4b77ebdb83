"""Documents and their renderers (`document`), and the pages of runs and studies."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
