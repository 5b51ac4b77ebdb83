"""Published studies, one folder each: study.toml, published.toml, README.md and, for what
cannot be said in tables of keys and values, study.py."""
