from .trial import LineTrial, pack_of, trial, try_line

__all__ = ["LineTrial", "pack_of", "trial", "try_line"]
