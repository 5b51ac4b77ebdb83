"""Adds a segment each round-trip time; congestion leaves a share of the window.

aqmlab run examples/scenario.toml --set transport.congestion_control=my_control.py:MyControl
"""


class MyControl:
    def __init__(self, setup, kept=0.5):
        self.kept = kept
        self.mss = setup.mss
        self.window = setup.initial_window  # bytes
        self.ssthresh = setup.initial_ssthresh
        self.before = self.window, self.ssthresh
        self.counted = 0  # acknowledged since the window grew last

    def on_ack(self, ack):
        if ack.acked == 0 or ack.ece or ack.in_recovery or not ack.window_limited:
            return
        if self.window < self.ssthresh:
            self.window += min(ack.acked, self.mss)
            return
        self.counted += min(ack.acked, ack.delivered)
        if self.counted >= self.window:
            self.counted -= self.window
            self.window += self.mss

    def on_congestion(self, event):
        in_use = min(event.flight_size, self.window)
        kept = max(int(self.kept * in_use), 2 * self.mss)
        self.counted = 0
        if event.first:
            self.before = self.window, self.ssthresh
            self.ssthresh = kept
        self.window = self.mss if event.kind == "timeout" else kept

    def on_undo(self):
        self.window = max(self.window, self.before[0])
        self.ssthresh = max(self.ssthresh, self.before[1])

    def on_idle(self, restart_window):
        self.window = min(self.window, restart_window)

    def set_ssthresh(self, ssthresh):
        self.ssthresh = max(ssthresh, 2 * self.mss)

    def on_recovery_exit(self, in_flight):
        self.window = min(self.ssthresh, max(in_flight, self.mss) + self.mss)
