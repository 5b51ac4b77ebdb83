from .trial import Trial, pack_of, trial

__all__ = ["Trial", "pack_of", "trial"]
