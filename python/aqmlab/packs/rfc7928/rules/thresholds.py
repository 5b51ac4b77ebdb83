"""The thresholds of the rules, the same for all disciplines."""

from __future__ import annotations

SHORTER, LONGER = 0.8, 1.25
"""Ratios of delays (times, losses) from which one is shorter or longer than another."""
KEPT, LOST, GAINED = -0.02, -0.10, 0.02
"""Relative changes of goodput: down to the first it is kept, below the second it is lost."""
BIAS = 0.8
"""Packet sizes: small packets may not be lost at less than this share of the large ones' rate."""
REST = 0.5
"""Unresponsive senders: TCP should get at least this share of the rest."""
YIELDS = 0.25
"""LEDBAT gives way if it has at most this share of the goodput."""
MARKS_HELP = 0.5
"""ECN spares losses if drops fall to this share."""
SENSITIVE, ROBUST = 0.15, 0.05
"""Parameters: relative ranges of goodput over half to twice the value."""
MIXED = 0.02
"""Scheduling: a smaller share of the drops on arrival (or from the queue) is not told."""
CONTROL_LOSS = 0.001
"""Bidirectional traffic: more acknowledgements lost than this, and than with the other."""
STREAM_LOSS = 0.005
"""Bursts: the same for packets of the constant stream."""
OPINION = 0.3
"""Calls: the difference of MOS that counts; the best two categories of ITU-T G.109 are 0.31 apart
(4.34 and 4.03)."""
RATIO, CHANGE = (SHORTER, LONGER), (LOST, KEPT, GAINED)
