"""The scenarios of `python -m tools.bench`, as TOML files, and the processes that measure."""
