"""Monga and Kumar (2016), run again."""
