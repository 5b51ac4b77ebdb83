"""What `--help`, `list`, `explain` and completion say, kept so that they need not import it.

`help.txt`, `catalogue.py`, `options.py` and `reference.py` are made by `make reference`; a test
compares.
"""
