//! Proportional rate reduction: how much may be sent for each acknowledgement
//! of a recovery, so that the window arrives at ssthresh at its end.
//!
//! # Sources
//! draft-ietf-tcpm-prr-rfc6937bis (RFC 6937 as revised): the reduction in
//! proportion, then the conservative bound (CRB), or slow start (SSRB) after
//! an acknowledgement that moves on without telling of further losses.
//!
//! # Differences
//! 1. Also used when the window is reduced for an ECN echo, as in Linux.

/// The state of one reduction, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prr {
    recover_fs: u64,
    ssthresh: u64,
    mss: u64,
    delivered: u64,
    out: u64,
    /// What may be in the network.
    cwnd: u64,
}

/// What an acknowledgement brings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub delivered: u64,
    pub pipe: u64,
    /// SND.UNA has moved on, and no further loss was found.
    pub safe: bool,
}

impl Prr {
    /// A reduction begins; `recover_fs` is what was in flight, without what
    /// SACK had reported before.
    pub fn new(recover_fs: u64, ssthresh: u64, mss: u64) -> Self {
        Prr { recover_fs: recover_fs.max(1), ssthresh, mss, delivered: 0, out: 0, cwnd: ssthresh }
    }

    pub fn on_ack(&mut self, ack: Progress) {
        self.delivered += ack.delivered;
        let mut count = if ack.pipe > self.ssthresh {
            let target = u128::from(self.delivered) * u128::from(self.ssthresh);
            let target = target.div_ceil(u128::from(self.recover_fs)) as u64;
            target.saturating_sub(self.out)
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

    /// One of 20 is lost and half of the window kept: a segment leaves for
    /// every two acknowledgements until ssthresh is in the network, and then
    /// one for each.
    #[test]
    fn a_single_loss_halves_the_rate_evenly() {
        let mut prr = Prr::new(20_000, 10_000, 1000);
        let (mut pipe, mut sent) = (19_000, Vec::new());
        for number in 0..19 {
            pipe -= 1000;
            prr.on_ack(ack(1000, pipe, false));
            while pipe + 1000 <= prr.cwnd() {
                pipe += 1000;
                prr.on_sent(1000);
                sent.push(number);
            }
        }
        assert_eq!(sent, [1, 3, 5, 7, 9, 11, 13, 16, 17, 18]);
        assert_eq!(pipe, 10_000);
    }

    /// Below ssthresh: as much as was delivered, and a segment more if it goes
    /// well; never beyond ssthresh.
    #[test]
    fn below_ssthresh_what_was_delivered_bounds_what_is_sent() {
        let mut prr = Prr::new(20_000, 10_000, 1000);
        prr.on_ack(ack(1000, 4000, false));
        assert_eq!(prr.cwnd(), 5000, "CRB");
        prr.on_sent(1000);
        prr.on_ack(ack(1000, 4000, true));
        assert_eq!(prr.cwnd(), 6000, "SSRB");
        prr.on_ack(ack(9000, 4000, true));
        assert_eq!(prr.cwnd(), 10_000);
    }

    #[test]
    fn the_first_repair_is_sent_whatever_the_window() {
        let mut prr = Prr::new(20_000, 1, 1000);
        prr.on_ack(ack(0, 15_000, false));
        assert_eq!(prr.cwnd(), 16_000);
        prr.on_sent(1000);
        prr.on_ack(ack(0, 15_000, false));
        assert_eq!(prr.cwnd(), 15_000);
    }
}
