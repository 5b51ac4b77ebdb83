"""Adds a segment each round-trip time; congestion leaves a share of the flight.

aqmlab run examples/scenario.toml --set transport.congestion_control=my_control.py:MyControl
"""


class MyControl:
    def __init__(self, setup, kept=0.5):
        self.kept = kept
        self.mss = setup.mss
        self.window = setup.initial_window  # bytes
        self.ssthresh = setup.initial_ssthresh
        self.before = self.window, self.ssthresh

    def on_ack(self, ack):
        if ack.acked == 0 or ack.ece or ack.in_recovery or not ack.window_limited:
            return
        if self.window < self.ssthresh:
            self.window += min(ack.acked, self.mss)
        else:
            self.window += max(self.mss * self.mss // self.window, 1)

    def on_congestion(self, event):
        kept = max(int(self.kept * event.flight_size), 2 * self.mss)
        if event.first:
            self.before = self.window, self.ssthresh
            self.ssthresh = kept
        self.window = self.mss if event.kind == "timeout" else kept

    def on_undo(self):
        self.window = max(self.window, self.before[0])
        self.ssthresh = max(self.ssthresh, self.before[1])

    def on_idle(self, restart_window):
        self.window = min(self.window, restart_window)

    def on_recovery_exit(self, in_flight):
        self.window = min(self.ssthresh, max(in_flight, self.mss) + self.mss)
