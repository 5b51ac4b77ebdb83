from . import document

__all__ = ["document"]
