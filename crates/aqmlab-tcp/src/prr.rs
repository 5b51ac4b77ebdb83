//! Proportional rate reduction: how much may be sent for each acknowledgement
//! of a recovery, so that the window arrives at ssthresh at its end.
//!
//! # Sources
//! RFC 9937, section 6: the reduction in proportion, then the conservative
//! bound (CRB), or slow start (SSRB) after an acknowledgement that moves on
//! without telling of further losses.
//!
//! # Differences
//! 1. Also used when the window is reduced for an ECN echo, as in Linux.
//! 2. What may be sent in proportion is rounded up to whole segments, as in
//!    Linux and in the figures of section 8.

/// The state of one reduction: in bytes, or with an MSS of 1 in segments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prr {
    recover_fs: u64,
    pub ssthresh: u64,
    mss: u64,
    delivered: u64,
    out: u64,
    /// Bytes allowed in the network.
    cwnd: u64,
}

/// What an acknowledgement brings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub delivered: u64,
    pub pipe: u64,
    /// SND.UNA has moved on, and no further loss was found.
    pub safe: bool,
}

impl Prr {
    /// Begins a reduction; `recover_fs` is the amount in flight without the data that SACK had
    /// reported before.
    pub fn new(recover_fs: u64, ssthresh: u64, mss: u64) -> Self {
        Prr { recover_fs: recover_fs.max(1), ssthresh, mss, delivered: 0, out: 0, cwnd: ssthresh }
    }

    /// Section 6.2.
    pub fn on_ack(&mut self, ack: Progress) {
        if ack.delivered == 0 {
            return;
        }
        self.delivered += ack.delivered;
        let mut count = if ack.pipe > self.ssthresh {
            let target = u128::from(self.delivered) * u128::from(self.ssthresh);
            let target = target.div_ceil(u128::from(self.recover_fs)) as u64;
            target.next_multiple_of(self.mss).saturating_sub(self.out)
        } else {
            let bound = self.delivered.saturating_sub(self.out).max(ack.delivered);
            let bound = bound + if ack.safe { self.mss } else { 0 };
            bound.min(self.ssthresh - ack.pipe)
        };
        if self.out == 0 && count == 0 {
            count = self.mss; // the fast retransmit
        }
        self.cwnd = ack.pipe + count;
    }

    pub fn on_sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    pub fn cwnd(&self) -> u64 {
        self.cwnd
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(delivered: u64, pipe: u64, safe: bool) -> Progress {
        Progress { delivered, pipe, safe }
    }

    #[test]
    fn the_first_repair_is_sent_whatever_the_window() {
        let mut prr = Prr::new(20_000, 10_000, 1000);
        prr.on_ack(ack(500, 10_000, false));
        assert_eq!(prr.cwnd(), 11_000);
        prr.on_sent(1000);
        prr.on_ack(ack(500, 10_000, false));
        assert_eq!(prr.cwnd(), 10_000);
    }
}
