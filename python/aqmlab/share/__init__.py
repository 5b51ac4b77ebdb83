"""Results as one file, and their repetition elsewhere: `aqmlab bundle` and `aqmlab rerun`."""
