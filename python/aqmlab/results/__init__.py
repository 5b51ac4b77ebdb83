"""Results as tables: of a run (`run`) and a study (`study`), in memory or in a folder, put together
from finished runs (`tables`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
