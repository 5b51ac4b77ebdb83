"""Packs: the questions of documents, as declarations for `aqmlab.campaign`."""
