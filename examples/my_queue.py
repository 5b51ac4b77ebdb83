"""Drops from the front what has waited too long.

aqmlab run examples/scenario.toml --set queue=my_queue.py:MyQueue --set queue.patience=10ms
"""

from collections import deque


class MyQueue:
    def __init__(self, link, patience="20ms"):
        self.patience = patience  # nanoseconds
        self.fifo = deque()

    def enqueue(self, packet, cx):
        self.fifo.append(packet)

    def dequeue(self, cx):
        while len(self.fifo) > 1 and cx.now - self.fifo[0].arrival > self.patience:
            cx.drop(self.fifo.popleft())
        return self.fifo.popleft() if self.fifo else None

    def change(self, cx, patience):  # a new value while the queue runs
        self.patience = patience
