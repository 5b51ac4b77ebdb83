from .sweep import Study, study

__all__ = ["Study", "study"]
