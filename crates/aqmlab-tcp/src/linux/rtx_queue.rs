//! What an acknowledgement takes off the queue (`tcp_clean_rtx_queue`).

use super::LinuxSender;
use super::acks::{Sacked, flag};
use super::control::Algorithm;
use super::segment_queue::tag;
use super::state::Rate;

/// Segments taken off the queue.
struct Cleaned {
    segments: u32,
    /// When the first and the last segment was sent that is neither repeated nor reported
    /// before, in microseconds; 0 for none.
    first: u64,
    last: u64,
    /// The lowest of these.
    reordered: u64,
    flags: u32,
}

impl LinuxSender {
    /// Takes acknowledged segments off the queue.
    pub(super) fn clean(
        &mut self,
        prior_fack: u64,
        prior_una: u64,
        so_far: u32,
        sacked: &mut Sacked,
        rate: &mut Rate,
    ) -> u32 {
        let ece = so_far & flag::ECE != 0;
        let prior_sacked = self.state.sacked_out;
        let cleaned = self.take_acknowledged(ece, rate);
        let mut flags = cleaned.flags;
        let head = self.queue.head().copied();
        if head.is_some_and(|head| head.has(tag::SACKED)) {
            flags |= flag::RENEGING;
        }
        let now = self.state.micros as i64;
        let (mut rtt, mut last_rtt, mut sack_rtt) = (-1, -1, -1);
        if cleaned.first != 0 && flags & flag::RETRANS_ACKED == 0 {
            rtt = now - cleaned.first as i64;
            last_rtt = now - cleaned.last as i64;
            if cleaned.segments == 1
                && prior_sacked == 0
                && self.state.una - prior_una < u64::from(self.state.mss)
                && rate.prior_delivered + 1 == self.state.delivered
                && flags & flag::ALERT == 0
            {
                flags |= flag::MAYBE_DELAYED;
            }
        }
        if sacked.first != 0 {
            sack_rtt = now - sacked.first as i64;
            last_rtt = now - sacked.last as i64;
        }
        let updated = self.take_rtt(flags, rtt, sack_rtt, last_rtt, rate);
        if flags & flag::DATA_ACKED != 0 {
            flags |= flag::SET_TIMER;
            if self.sysctl.sack {
                if cleaned.reordered < prior_fack {
                    self.check_reordering(cleaned.reordered);
                }
                let left = prior_sacked - self.state.sacked_out.min(prior_sacked);
                self.lost_count -= self.lost_count.min(left);
            } else {
                self.remove_reno_sacks(cleaned.segments, ece);
                if flags & flag::RETRANS_ACKED != 0 {
                    flags &= !flag::ORIG_SACK_ACKED;
                }
            }
        } else if let Some(head) = head
            && updated
            && sack_rtt >= 0
            && sack_rtt > now - head.micros() as i64
        {
            flags |= flag::SET_TIMER;
        }
        self.control.measured(&mut self.state, rate.rtt);
        flags
    }

    /// Takes off the segments that are acknowledged as a whole.
    #[inline(always)]
    fn take_acknowledged(&mut self, ece: bool, rate: &mut Rate) -> Cleaned {
        let reordered = self.state.nxt;
        let mut cleaned = Cleaned { segments: 0, first: 0, last: 0, reordered, flags: 0 };
        while let Some(&segment) = self.queue.head() {
            if segment.end() > self.state.una {
                break;
            }
            let place = self.queue.first();
            if segment.has(tag::AGAIN) {
                self.state.retrans_out -= u32::from(segment.has(tag::RETRANSMITTED));
                cleaned.flags |= flag::RETRANS_ACKED;
            } else if !segment.has(tag::SACKED) {
                cleaned.last = segment.micros();
                if cleaned.first == 0 {
                    cleaned.first = cleaned.last;
                }
                cleaned.reordered = cleaned.reordered.min(segment.seq);
                if segment.end() <= self.state.high_seq {
                    cleaned.flags |= flag::ORIG_SACK_ACKED;
                }
            }
            if segment.has(tag::SACKED) {
                self.state.sacked_out -= 1;
            } else if self.sysctl.sack {
                self.state.count_delivered(1, ece);
                let spurious =
                    segment.has(tag::AGAIN) && self.state.echoes_before(segment.sent / 1_000_000);
                if !spurious {
                    self.advance_rack(segment.tags, segment.end(), segment.micros());
                }
            }
            self.state.lost_out -= u32::from(segment.has(tag::LOST));
            self.state.packets_out -= 1;
            cleaned.segments += 1;
            self.rate_delivered(place, rate);
            cleaned.flags |= flag::DATA_ACKED;
            self.again_hint = self.again_hint.filter(|hint| *hint != place);
            self.lost_hint = self.lost_hint.filter(|hint| *hint != place);
            self.queue.pop();
        }
        cleaned
    }
}
