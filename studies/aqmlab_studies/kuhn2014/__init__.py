"""Kuhn, Lochin and Mehani (2014): CoDel against RED in the face of bufferbloat."""
