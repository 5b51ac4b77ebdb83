"""The scenarios of `aqmlab bench`, as TOML files, and the process that times them."""
