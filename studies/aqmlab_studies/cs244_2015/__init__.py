"""Hill and Shah (2015): CoDel against a long tail-drop queue while the rate jumps."""
