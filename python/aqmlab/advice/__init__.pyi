from .trial import Trial, study_of

__all__ = ["Trial", "study_of"]
