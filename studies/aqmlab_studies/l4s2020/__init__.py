"""The L4S tests of 2020: real Linux, Prague and CUBIC through one queue, beside ours."""
