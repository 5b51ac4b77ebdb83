//! Transmission (`tcp_output.c`).

use aqmlab_core::{Ecn, Time};

use super::LinuxSender;
use super::acks::Retransmissions;
use super::control::{Algorithm, Event};
use super::segment_queue::{Segment, tag};
use super::state::{CaState, Pending};
use crate::congestion::SentSample;
use crate::segment::DataSegment;

/// Segments that are not paced.
const UNPACED: u64 = 10;

/// Segments that are handed over at once: more than any window. A control whose window has no bound
/// would fill the memory.
const MOST_AT_ONCE: usize = 1 << 20;

/// Amount of data sent at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    All,
    /// One buffer.
    Buffer,
    /// One buffer, of one segment at least; the window does not count.
    Probe,
}

impl LinuxSender {
    /// Sends as much of the written data as the windows allow.
    #[inline]
    pub(super) fn push(&mut self) {
        if self.state.nxt < self.state.written {
            self.push_pending();
        }
    }
    /// Does the same, and schedules probes of a closed window.
    pub(super) fn push_pending(&mut self) {
        if self.write_xmit(Amount::All) && self.pending.is_none() {
            self.set_timer(Pending::WindowProbe, self.state.rto.max(self.state.rto_min));
        }
    }

    /// True if pacing delays transmission.
    fn is_paced(&mut self) -> bool {
        if !self.state.paces || self.state.paced_until <= self.state.nanos {
            return false;
        }
        self.pace_timer.get_or_insert(self.clock.time(self.state.paced_until));
        true
    }

    /// Sends new data; whether there are some, nothing is in flight, and none can be sent.
    pub(super) fn write_xmit(&mut self, amount: Amount) -> bool {
        let mut sent = 0;
        let mut limited = false;
        let most = if self.sysctl.offload { self.segments_at_once() } else { 1 };
        while self.state.nxt < self.state.written {
            if self.is_paced() || self.outbox.len() > MOST_AT_ONCE {
                break;
            }
            let (in_flight, cwnd) = (self.state.in_flight(), self.state.cwnd);
            let room = match amount {
                _ if in_flight < cwnd => (cwnd >> 1).max(1).min(cwnd - in_flight),
                Amount::Probe => 1,
                _ => break,
            };
            let mss = u64::from(self.state.mss);
            let left = self.buffer_left(room.min(most));
            if self.state.nxt + left.min(mss) > self.state.window_end() {
                break;
            }
            if left > mss && amount == Amount::All && self.defers(left, most, &mut limited) {
                break;
            }
            let len = left.min(u64::from(room.min(most)) * mss);
            sent += self.send_new(len.min(self.state.window_end() - self.state.nxt));
            if amount != Amount::All {
                break;
            }
        }
        limited |= self.state.in_flight() >= self.state.cwnd;
        if sent > 0 || (limited && !self.sysctl.forgets) {
            self.validate(limited);
        }
        if sent > 0 {
            if self.state.in_reduction() {
                self.state.prr.on_sent(u64::from(sent));
            }
            if amount != Amount::Probe {
                self.schedule_probe(false);
            }
            return false;
        }
        self.state.packets_out == 0 && self.state.nxt < self.state.written
    }

    /// Sends new data at once; returns the number of segments.
    pub(super) fn send_new(&mut self, len: u64) -> u32 {
        let (begin, end) = (self.state.nxt, self.state.nxt + len);
        let (first, mut number) = (self.state.packets_out == 0, 0);
        let leaves = self.leaves();
        let mut cwr = std::mem::take(&mut self.state.cwr_due);
        let mut seq = begin;
        while seq < end {
            let len = (end - seq).min(u64::from(self.state.mss)) as u32;
            let place = self.queue.push(Segment::new(seq, len));
            self.queue.at_mut(place).tags |= if seq > begin { tag::PART } else { 0 };
            self.transmit(place, leaves, false, std::mem::take(&mut cwr));
            seq += u64::from(len);
            self.state.nxt = seq;
            self.state.packets_out += 1;
            number += 1;
        }
        self.pace(leaves, len);
        if first || self.pending == Some(Pending::Probe) {
            self.restart_timer();
        }
        number
    }

    /// When a segment leaves that is sent now, and how much later that is than it could have.
    fn leaves(&mut self) -> (u64, u64) {
        let before = self.state.paced_until;
        self.state.paced_until = before.max(self.state.nanos);
        (self.state.paced_until, self.state.paced_until - before)
    }
    /// So much has been sent: when the next may leave.
    fn pace(&mut self, (_, credit): (u64, u64), len: u64) {
        let state = &mut self.state;
        let unpaced = matches!(state.pacing_rate, 0 | u64::MAX) || state.data_segments < UNPACED;
        if state.paces && !unpaced {
            let time = u128::from(len) * 1_000_000_000 / u128::from(state.pacing_rate);
            let time = time as u64;
            state.paced_until += time - credit.min(time / 2);
        }
    }

    /// A segment leaves.
    fn transmit(&mut self, place: u64, (at, _): (u64, u64), again: bool, cwr: bool) {
        if self.state.in_flight() == 0 {
            self.tell(Event::TransmitStart);
        }
        let state = &mut self.state;
        state.last_sent = state.jiffies;
        state.data_segments += 1;
        let segment = self.queue.at_mut(place);
        segment.sent = at;
        let (seq, len) = (segment.seq - 1, segment.len);
        if again {
            self.queue.move_last(place);
        }
        self.rate_sent(place);
        if self.control.is_external() {
            self.report_sent(u64::from(len), again);
        }
        let ecn = self.ecn(!again);
        let mut segment = self.conn.segment(seq, len, self.clock.time(at), again);
        if !again && !self.sysctl.offload {
            let (data, is_full) = ((seq, segment.end()), len == self.state.mss);
            let half = self.state.max_window >> 1;
            segment.push |= self.pushes.at(data, is_full, self.conn.write, half);
        }
        self.outbox.push_back(DataSegment { ecn, cwr, ..segment });
    }

    /// ECN field of new data, or of other packets.
    #[inline]
    pub(super) fn ecn(&self, is_new: bool) -> Ecn {
        let capable = self.state.ecn && (is_new || self.control.needs_ecn());
        if capable { self.sysctl.codepoint.into() } else { Ecn::NotEct }
    }

    /// Sends the SYN. A retransmission does not ask for ECN (`tcp_ecn_clear_syn`; RFC 3168, section
    /// 6.1.1.1), of accurate ECN only from the second on (RFC 9768, section 3.1.4.1).
    pub(super) fn transmit_syn(&mut self, now: Time) {
        let (ecn, state) = (self.ecn(false), &self.state);
        let asks = state.ecn && self.conn.syn_repeats <= u32::from(state.accurate);
        self.outbox.push_back(DataSegment { ecn, ..self.conn.syn(now, asks) });
    }

    /// Reports a segment to a control that is not the kernel's.
    #[cold]
    #[inline(never)]
    fn report_sent(&mut self, bytes: u64, retransmission: bool) {
        let state = &self.state;
        let sent = SentSample {
            now: state.now,
            bytes,
            prior_in_flight: u64::from(state.in_flight()) * u64::from(state.mss),
            app_limited: state.app_limited != 0,
            retransmission,
        };
        if let Some(external) = self.control.as_external() {
            external.on_sent(&sent);
        }
    }

    /// Sends a segment again, and those after it in its packet, so many at most; nothing if the
    /// receiver has no room for it. Returns the number.
    fn transmit_again(&mut self, place: u64, most: u32) -> u32 {
        let segment = *self.queue.at(place);
        let room = self.state.window_end();
        if segment.seq >= room && segment.seq != self.state.una {
            return 0;
        }
        let mut end = place + 1;
        while end < self.queue.end() && self.queue.at(end).has(tag::PART) {
            let next = self.queue.at(end);
            let is_other =
                (next.tags ^ segment.tags) & (tag::LOST | tag::RETRANSMITTED | tag::SACKED);
            if end == place + u64::from(most) || is_other != 0 || next.end() > room {
                self.queue.at_mut(end).tags &= !tag::PART;
                break;
            }
            end += 1;
        }
        if end == place + 1 {
            self.collapse(place);
        }
        let (leaves, mut bytes) = (self.leaves(), 0);
        for place in place..end {
            self.state.total_retrans += 1;
            self.transmit(place, leaves, true, false);
            bytes += u64::from(self.queue.at(place).len);
            self.queue.at_mut(place).tags |= tag::EVER;
        }
        self.pace(leaves, bytes);
        (end - place) as u32
    }
    /// A short segment that is sent again takes in those after it that fit beside it.
    fn collapse(&mut self, place: u64) {
        while place + 1 < self.queue.end() {
            let (this, next) = (self.queue.at(place), self.queue.at(place + 1));
            if this.len + next.len > self.state.mss
                || this.has(tag::SACKED)
                || next.has(tag::SACKED)
                || next.end() > self.state.window_end()
                || (place + 1..self.queue.end().min(place + 3))
                    .any(|place| self.queue.at(place).has(tag::PART))
            {
                break;
            }
            let gone = self.queue.merge(place);
            self.queue.at_mut(place).tags |= gone.tags & tag::EVER;
            let state = &mut self.state;
            state.packets_out -= 1;
            state.retrans_out -= u32::from(gone.has(tag::RETRANSMITTED));
            state.lost_out -= u32::from(gone.has(tag::LOST));
            self.lost_hint = None;
            self.again_hint = self.again_hint.map(|hint| hint - u64::from(hint > place));
            if !self.sysctl.sack && state.sacked_out > 0 {
                state.sacked_out -= 1;
            }
        }
    }

    /// Sends the last segment again, as a probe.
    pub(super) fn transmit_last(&mut self) -> bool {
        self.transmit_again(self.queue.end() - 1, 1) > 0
    }
    /// Retransmits a segment, and those after it in its packet, so many at most; returns the number.
    pub(super) fn retransmit(&mut self, place: u64, most: u32) -> u32 {
        let done = self.transmit_again(place, most);
        for place in place..place + u64::from(done) {
            self.queue.at_mut(place).tags |= tag::AGAIN;
        }
        self.state.retrans_out += done;
        let stamp = self.queue.at(place).sent / 1_000_000;
        let state = &mut self.state;
        if state.retrans_stamp == 0 {
            state.retrans_stamp = stamp;
        }
        state.undo_retrans = state.undo_retrans.max(0) + done.max(1) as i32;
        done
    }

    /// Retransmits lost segments as far as the window allows.
    pub(super) fn retransmit_lost(&mut self) {
        if self.state.packets_out == 0 {
            return;
        }
        let first = self.queue.first();
        let mut place = self.again_hint.unwrap_or(first);
        let (mut hole, mut restart) = (false, false);
        let most = if self.sysctl.offload { self.segments_at_once() } else { 1 };
        while place < self.queue.end() {
            if self.is_paced() {
                break;
            }
            if !hole {
                self.again_hint = Some(place);
            }
            let state = &self.state;
            if state.cwnd <= state.in_flight() || state.retrans_out >= state.lost_out {
                break;
            }
            let segment = self.queue.at(place);
            let rests = segment.has(tag::SACKED | tag::RETRANSMITTED);
            if !segment.has(tag::LOST) {
                hole |= !rests;
            } else if !rests {
                let done = self.retransmit(place, most.min(state.cwnd - state.in_flight()));
                if done == 0 {
                    break;
                }
                if self.state.in_reduction() {
                    self.state.prr.on_sent(u64::from(done));
                }
                restart |= place == first && self.pending != Some(Pending::Reordering);
                place += u64::from(done - 1);
            }
            place += 1;
        }
        if restart {
            self.set_paced_timer(Pending::Timeout, self.state.rto);
        }
    }

    /// At the end of an acknowledgement in a recovery.
    pub(super) fn repair(&mut self, repair: Retransmissions) {
        match repair {
            Retransmissions::None => return,
            Retransmissions::Lost => {}
            Retransmissions::New => {
                self.push_pending();
                if self.state.nxt > self.state.high_seq {
                    return;
                }
                self.state.frto = false;
            }
        }
        self.retransmit_lost();
    }

    /// Records whether the window was full in this round trip; if it was not for a timeout, reduces
    /// it to the part in use (RFC 2861).
    fn validate(&mut self, limited: bool) {
        let (state, forgets) = (&mut self.state, self.sysctl.forgets);
        if state.una >= state.usage_end
            || (limited && !forgets)
            || ((forgets || !state.cwnd_limited) && state.packets_out > state.max_packets_out)
        {
            state.cwnd_limited = limited;
            state.max_packets_out = state.packets_out;
            state.usage_end = state.nxt;
        }
        if state.is_cwnd_limited() {
            state.cwnd_used = 0;
            state.cwnd_stamp = state.jiffies;
            return;
        }
        state.cwnd_used = state.cwnd_used.max(state.packets_out);
        if !self.sysctl.after_idle
            || self.control.is_bbr()
            || state.jiffies - state.cwnd_stamp < state.rto
        {
            return;
        }
        if state.ca_state == CaState::Open {
            let used = state.cwnd_used.max(state.initial_window);
            if used < state.cwnd {
                state.ssthresh = state.current_ssthresh();
                state.cwnd = (state.cwnd + used) >> 1;
                self.control.on_idle(state);
            }
            state.cwnd_used = 0;
        }
        state.cwnd_stamp = state.jiffies;
    }

    /// After an idle time the window is halved for each timeout of it.
    pub(super) fn restart_after_idle(&mut self) {
        let state = &self.state;
        if !self.sysctl.after_idle || state.packets_out > 0 || self.control.is_bbr() {
            return;
        }
        let mut idle = (state.jiffies - state.last_sent) as i64;
        let rto = state.rto as i64;
        if idle <= rto {
            return;
        }
        self.tell(Event::Restart);
        let state = &mut self.state;
        state.ssthresh = state.current_ssthresh();
        let least = state.initial_window.min(state.cwnd);
        let mut cwnd = state.cwnd;
        loop {
            idle -= rto;
            if idle <= 0 || cwnd <= least {
                break;
            }
            cwnd >>= 1;
        }
        state.cwnd = cwnd.max(least);
        state.cwnd_stamp = state.jiffies;
        state.cwnd_used = 0;
        self.control.on_idle(state);
    }
}

#[cfg(test)]
mod tests {
    use crate::Sender;
    use crate::params::{Profile, Recovery, TcpParams};
    use crate::segment::Ack;
    use crate::testing::{RTT, at};

    /// tcp_retrans_try_collapse: a packet of several segments takes in no other segments.
    #[test]
    fn the_segments_of_a_packet_are_sent_again_together() {
        for (offload, again) in [(true, vec![1448, 656]), (false, vec![1448, 1356])] {
            let mut params = TcpParams::of_profile(Profile::Linux61).unwrap();
            (params.recovery, params.timestamps) = (Recovery::NewReno, false);
            params.segmentation_offload = offload;
            let mut sender = Sender::new(&params, Some(0), 1);
            let lengths = |sender: &mut Sender, now| {
                std::iter::from_fn(|| sender.poll(now))
                    .map(|segment| segment.len)
                    .collect::<Vec<_>>()
            };
            sender.open(at(0));
            sender.poll(at(0));
            sender.on_ack(at(0) + RTT, &Ack { syn: true, window: 65_535, ..Ack::default() });
            let sent = [1448, 2104, 700].map(|bytes| {
                sender.write(bytes);
                lengths(&mut sender, at(0) + RTT)
            });
            assert_eq!(sent, [vec![1448], vec![1448, 656], vec![700]]);
            let late = sender.next_timeout().unwrap();
            sender.on_timeout(late);
            assert_eq!(lengths(&mut sender, late), [1448]);
            sender.on_ack(late + RTT, &Ack { ack: 1448, window: 65_535, ..Ack::default() });
            assert_eq!(lengths(&mut sender, late + RTT), again);
        }
    }
}
