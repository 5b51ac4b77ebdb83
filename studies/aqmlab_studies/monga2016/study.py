"""Figures, tables, statements and causes."""

from aqmlab_studies.monga2016.causes import causes
from aqmlab_studies.monga2016.claims import claims
from aqmlab_studies.monga2016.figures import figures, tables

__all__ = ["causes", "claims", "figures", "tables"]
