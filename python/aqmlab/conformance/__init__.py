"""Replays what reference implementations of queue disciplines did, packet by packet."""
