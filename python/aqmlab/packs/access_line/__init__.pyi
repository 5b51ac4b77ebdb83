from .trial import LineTrial, pack_of, trial

__all__ = ["LineTrial", "pack_of", "trial"]
