"""Controllers of QUIC libraries beside Linux's, over six queues."""
