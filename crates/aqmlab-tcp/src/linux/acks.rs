//! ACK processing of the Linux sender (`tcp_ack`, `tcp_clean_rtx_queue`).

use aqmlab_core::{Span, Time};

use super::LinuxSender;
use super::control::{Algorithm, Event};
use super::state::{REORDERING, Rate};
use crate::connection::ConnState;
use crate::segment::{Ack, is_outdated};

/// Properties of an acknowledgement.
pub(super) mod flag {
    pub const WIN_UPDATE: u32 = 1;
    pub const DATA_ACKED: u32 = 1 << 1;
    pub const RETRANS_ACKED: u32 = 1 << 2;
    pub const DATA_SACKED: u32 = 1 << 3;
    pub const ECE: u32 = 1 << 4;
    pub const SLOWPATH: u32 = 1 << 5;
    pub const ORIG_SACK_ACKED: u32 = 1 << 6;
    pub const UNA_ADVANCED: u32 = 1 << 7;
    pub const DSACKING: u32 = 1 << 8;
    pub const RENEGING: u32 = 1 << 9;
    pub const SET_TIMER: u32 = 1 << 10;
    pub const LOST_RETRANS: u32 = 1 << 11;
    pub const MAYBE_DELAYED: u32 = 1 << 12;
    pub const DSACK_TLP: u32 = 1 << 13;
    /// Not a duplicate.
    pub const NOT_DUP: u32 = WIN_UPDATE | DATA_ACKED;
    /// The congestion machine is to look at it.
    pub const ALERT: u32 = DATA_SACKED | ECE | DSACKING;
    pub const PROGRESS: u32 = DATA_ACKED | DATA_SACKED;
}

/// Retransmissions after an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retransmissions {
    None,
    /// Lost segments.
    Lost,
    /// New data, to find out whether a timeout was spurious.
    New,
}

/// SACK information of an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sacked {
    pub flags: u32,
    /// When the first and the last never repeated segment was sent that is newly reported, in
    /// microseconds; 0 for none.
    pub first: u64,
    pub last: u64,
    /// Lowest reported segment that indicates reordering.
    pub reordered: u64,
    pub delivered: u32,
}

impl LinuxSender {
    /// An acknowledgement arrives.
    #[inline]
    pub fn on_ack(&mut self, now: Time, ack: &Ack) {
        if self.refuses(ack) {
            self.answer_refused(now);
            return;
        }
        self.conn.take_timestamps(ack);
        if ack.syn {
            self.on_syn_ack(now, ack);
            return;
        }
        if self.conn.state != ConnState::Established || ack.ack + 1 > self.state.nxt {
            return;
        }
        self.refresh(now);
        self.state.echoed = ack.timestamps.map_or(0, |times| self.clock.stamp(times.echo));
        self.take(ack);
        self.push();
        self.wake_writer();
    }

    /// PAWS (`tcp_paws_discard`, `tcp_disordered_ack`): one that a later one has overtaken counts if
    /// it is a duplicate of the last number, does not change the window and is not older than 1.2
    /// timeouts.
    #[inline]
    fn refuses(&self, ack: &Ack) -> bool {
        let Some(times) = ack.timestamps else { return false };
        let (recent, state) = (self.conn.echo, &self.state);
        is_outdated(recent, times.value)
            && (ack.ack + 1 != state.una
                || !(1..=state.window).contains(&ack.window)
                || recent - times.value > Span::from_micros(1200) * state.rto)
    }

    /// The answer to what PAWS refuses is no segment here, but counts as the last transmission
    /// (`tcp_tso_should_defer`). There is one in 500 ms (`tcp_invalid_ratelimit`).
    #[cold]
    fn answer_refused(&mut self, now: Time) {
        self.refresh(now);
        let state = &mut self.state;
        if self.refused_at.is_none_or(|at| state.jiffies - at >= 500) {
            self.refused_at = Some(state.jiffies);
            state.paced_until = state.paced_until.max(state.nanos);
        }
    }

    fn on_syn_ack(&mut self, now: Time, ack: &Ack) {
        if self.conn.state != ConnState::SynSent {
            return;
        }
        self.refresh(now);
        self.conn.state = ConnState::Established;
        // The SYN of an answering side is its SYN-ACK, which has been sent for it.
        self.outbox.clear();
        let state = &mut self.state;
        // tcp_ecn_rcv_synack
        state.ecn &= ack.ece;
        (state.una, state.nxt) = (1, 1);
        (state.window, state.max_window) = (ack.window, ack.window);
        self.pushes.open(ack.window >> 1);
        state.window_of_syn = true;
        state.delivered = 1;
        state.delivered_at = state.micros;
        state.flight_began = self.clock.nanos(self.conn.syn_sent) / 1000;
        let (syn_sent, repeats) = (self.conn.syn_sent, self.conn.syn_repeats);
        let echoed = ack.timestamps.map(|times| self.clock.stamp(times.echo));
        state.total_retrans = u64::from(repeats);
        if repeats == 0 || echoed.is_some() {
            // One that was repeated is measured by timestamps, in milliseconds.
            let rtt = match echoed.filter(|_| repeats > 0) {
                Some(echoed) => (state.nanos / 1_000_000).saturating_sub(echoed).max(1) * 1000,
                None => state.micros.saturating_sub(self.clock.nanos(syn_sent) / 1000),
            };
            state.take_min_rtt(rtt, false);
            state.estimate(rtt);
            state.rto = state.base_rto().min(state.rto_max);
            state.rack.advanced = true;
            state.rack.rtt = rtt;
            state.rack.sent = state.flight_began;
            state.rack.end = 1;
            self.backoff = 0;
        } else {
            // tcp_init_metrics: TCP_TIMEOUT_FALLBACK.
            state.rto = 3000;
            let micros = 1000 * state.rto;
            (state.mdev, state.mdev_max, state.rttvar) = (micros, micros, micros);
        }
        // tcp_init_transfer: one segment if the SYN was sent three times, unless the echo is the
        // first one's: the SYN-ACK was late or lost (tcp_try_undo_spurious_syn).
        let is_spurious = echoed == Some(self.clock.stamp(syn_sent));
        state.cwnd = if repeats > 1 && !is_spurious { 1 } else { state.initial_window };
        state.cwnd_stamp = state.jiffies;
        state.last_sent = state.jiffies;
        self.pending = None;
        self.control.start(&mut self.state, now);
        if !self.control.has_rate() {
            self.state.update_pacing_rate();
        }
        self.has_written = self.state.written > 1;
        if self.has_written && self.conn.is_finite() {
            self.check_app_limited_of_first();
        }
    }

    fn take(&mut self, ack: &Ack) {
        let number = ack.ack + 1;
        let prior_una = self.state.una;
        if number < prior_una {
            return self.take_old(ack, prior_una);
        }
        let prior_fack = if self.sysctl.sack { self.fack() } else { prior_una };
        let (prior_packets, prior_delivered) = (self.state.packets_out, self.state.delivered);
        let (prior_lost, was_reneging) = (self.state.lost, self.state.is_reneging);
        let mut rate = Rate { rtt: -1, prior_in_flight: self.state.in_flight(), ..Rate::default() };
        let mut sacked = Sacked::default();
        let mut flags = 0;
        if number > prior_una {
            flags |= flag::UNA_ADVANCED;
            self.state.timeouts = 0;
        }
        let marked = self.state.take_marks(ack.ce);
        let ece = marked.packets > 0 || (ack.ece && self.state.ecn && !self.state.accurate);
        let mut report = self.control.as_external().is_some().then(|| self.begin_report(ack));
        let slow = ack.window != self.state.window || ece || !ack.sack.is_empty();
        if !slow && number > prior_una {
            self.advance(number);
            flags |= flag::WIN_UPDATE;
        } else {
            // A mere repetition keeps to the predicted path of the header.
            flags |= self.update_window(number, ack.window) | (u32::from(slow) * flag::SLOWPATH);
            if !ack.sack.is_empty() && self.sysctl.sack {
                sacked = self.take_sack(ack, prior_una, &mut rate);
                flags |= sacked.flags;
            }
            if ece {
                flags |= flag::ECE;
            }
            self.state.count_delivered(sacked.delivered, ece);
        }
        if prior_packets == 0 {
            return self.take_without_queue(number, prior_una, flags);
        }
        flags |= self.clean(prior_fack, prior_una, flags, &mut sacked, &mut rate);
        self.update_reordering_window(&rate);
        self.control.acknowledged(&mut self.state, flags & flag::SLOWPATH != 0);
        if let Some(report) = &mut report {
            report.mark(ece, marked);
            self.report_before(report, &sacked, &rate);
        }
        if self.state.probe_end != 0 {
            self.judge_probe(number, flags);
        }
        let mut repair = Retransmissions::None;
        self.judge(prior_una, &mut flags, &mut repair);
        if flags & flag::SET_TIMER != 0 {
            self.set_probe_or_timeout();
        }
        let delivered = (self.state.delivered - prior_delivered) as u32;
        let lost = (self.state.lost - prior_lost) as u32;
        rate.ack_delayed = flags & flag::MAYBE_DELAYED != 0;
        self.measure_rate(&mut rate, delivered, lost, was_reneging);
        match report {
            Some(report) => self.control_external(report, &sacked, &rate, flags),
            None => self.control_congestion(delivered, flags, &rate),
        }
        self.repair(repair);
    }

    /// Runs the recovery's state machine where an acknowledgement is dubious (`tcp_ack_is_dubious`).
    #[inline]
    fn judge(&mut self, prior_una: u64, flags: &mut u32, repair: &mut Retransmissions) {
        let dubious = *flags & flag::NOT_DUP == 0
            || *flags & flag::ALERT != 0
            || self.state.ca_state != super::state::CaState::Open;
        if dubious {
            let advanced = *flags & (flag::UNA_ADVANCED | flag::NOT_DUP | flag::DSACKING);
            self.machine(prior_una, u32::from(advanced == 0), flags, repair);
        }
    }

    /// A later one has come before.
    fn take_old(&mut self, ack: &Ack, prior_una: u64) {
        if ack.sack.is_empty() || !self.sysctl.sack {
            return;
        }
        let mut repair = Retransmissions::None;
        let mut flags = self.take_sack(ack, prior_una, &mut Rate::default()).flags;
        self.machine(prior_una, 0, &mut flags, &mut repair);
        self.settle_control();
        self.repair(repair);
    }

    /// Nothing was in flight.
    fn take_without_queue(&mut self, number: u64, prior_una: u64, mut flags: u32) {
        self.control.acknowledged(&mut self.state, flags & flag::SLOWPATH != 0);
        if flags & flag::DSACKING != 0 {
            let mut repair = Retransmissions::None;
            self.machine(prior_una, 0, &mut flags, &mut repair);
        }
        self.on_probe_answered();
        if self.state.probe_end != 0 {
            self.judge_probe(number, flags);
        }
    }

    fn advance(&mut self, number: u64) {
        self.conn.stats.bytes_acked += number - self.state.una;
        self.state.una = number;
        self.state.window_of_syn = false;
    }

    /// The window is taken from what acknowledges more, opens it or, with Linux 6.12, closes it, and
    /// from the first one (`tcp_may_update_window`).
    fn update_window(&mut self, number: u64, window: u64) -> u32 {
        let mut flags = 0;
        let closes = window == 0 && self.sysctl.grows;
        let first = self.state.window_of_syn;
        if number > self.state.una || window > self.state.window || closes || first {
            flags |= flag::WIN_UPDATE;
            if self.state.window != window {
                self.state.window = window;
                if self.state.nxt < self.state.written {
                    self.restart_after_idle();
                }
                self.state.max_window = self.state.max_window.max(window);
            }
        }
        self.advance(number);
        flags
    }

    pub(super) fn take_rtt(
        &mut self,
        flags: u32,
        rtt: i64,
        sack: i64,
        last: i64,
        rate: &mut Rate,
    ) -> bool {
        let (mut rtt, mut last) = (if rtt < 0 { sack } else { rtt }, last);
        if rtt < 0 && self.state.echoed != 0 && flags & flag::DATA_ACKED != 0 {
            let passed = (self.state.nanos / 1_000_000).saturating_sub(self.state.echoed);
            rtt = passed.max(1) as i64 * 1000;
            last = rtt;
        }
        rate.rtt = last;
        let Ok(rtt) = u64::try_from(rtt) else { return false };
        self.state.take_min_rtt(last.max(0) as u64, flags & flag::MAYBE_DELAYED != 0);
        self.state.estimate(rtt);
        self.state.rto = self.state.base_rto().min(self.state.rto_max);
        self.backoff = 0;
        true
    }

    /// Toward the end of an acknowledgement: the window.
    fn control_congestion(&mut self, delivered: u32, flags: u32, rate: &Rate) {
        if self.control.is_bbr() {
            self.control.control(&mut self.state, rate);
            return;
        }
        if self.state.in_reduction() {
            self.reduce(delivered, rate.losses, flags);
        } else {
            let counts = match self.state.reordering > REORDERING {
                true => flag::PROGRESS,
                false => flag::DATA_ACKED,
            };
            if flags & counts != 0 {
                self.control.avoid(&mut self.state, delivered);
                self.state.cwnd_stamp = self.state.jiffies;
            }
        }
        self.state.update_pacing_rate();
    }

    /// The state machine hears of an event.
    pub(super) fn tell(&mut self, event: Event) {
        self.control.event(&mut self.state, event);
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::{Ecn, Params, Span};

    use crate::linux::LinuxSender;
    use crate::params::{EcnMode, Profile, Recovery, TcpParams};
    use crate::receiver::Receiver;
    use crate::segment::{Ack, Timestamps};
    use crate::testing::{RTT, at};
    use crate::{SackBlocks, Sender};

    /// tcp_retransmit_timer (`tcp_syn_linear_timeouts`): seconds between the SYNs. tcp_init_metrics
    /// restores the threshold that the timeouts have reduced.
    #[test]
    fn lost_syns_leave_no_threshold() {
        for (profile, gaps) in
            [(Profile::Linux6, [1, 1, 1, 1, 1, 2]), (Profile::Linux61, [1, 2, 4, 8, 16, 32])]
        {
            let params = TcpParams::of_profile(profile).unwrap();
            let mut sender = Sender::new(&params, Some(100_000), 1);
            sender.open(at(0));
            let mut last = at(0);
            let seen = gaps.map(|_| {
                assert!(sender.poll(last).is_some_and(|segment| segment.syn));
                let next = sender.next_timeout().unwrap();
                sender.on_timeout(next);
                (next - std::mem::replace(&mut last, next)).as_secs_f64().floor() as u64
            });
            assert_eq!(seen, gaps);
            let mut sender = Sender::new(&params, Some(100_000), 1);
            sender.open(at(0));
            let syn = sender.next_timeout().unwrap();
            sender.on_timeout(syn);
            sender.on_ack(syn + RTT, &Ack { syn: true, window: 65_535, ..Ack::default() });
            assert_eq!(sender.cwnd(), 10 * params.mss.get());
            assert!(sender.ssthresh() > 1 << 60);
            assert_eq!(sender.rto(), Span::from_secs(3), "no sample without timestamps");
        }
    }

    /// tcp_ecn_clear_syn, tcp_ecn_rcv_synack, dctcp_init; RFC 9768, section 3.1.4.1: the SYN that
    /// arrives first decides whether the connection uses ECN.
    #[test]
    fn a_lost_syn_ends_ecn() {
        for (control, ecn, asks) in [
            ("cubic", EcnMode::Off, [false; 3]),
            ("cubic", EcnMode::Classic, [true, false, false]),
            ("dctcp", EcnMode::Dctcp, [true, false, false]),
            ("cubic", EcnMode::Accurate, [true, true, false]),
        ] {
            let mut params = TcpParams { ecn, ..TcpParams::of_profile(Profile::Linux6).unwrap() };
            params.set("congestion_control", &control.into()).unwrap();
            for (came, uses) in asks.into_iter().enumerate() {
                let mut sender = LinuxSender::new(&params, Some(1_000_000), 1);
                let mut receiver = Receiver::new(&params);
                sender.open(at(0));
                let mut last = at(0);
                for (number, asks) in asks.into_iter().enumerate() {
                    let syn = sender.poll(last).unwrap();
                    // TCP_CONG_NEEDS_ECN: also without the flags.
                    let is_capable = syn.ecn != Ecn::NotEct;
                    assert_eq!((syn.cwr, is_capable), (asks, control == "dctcp"));
                    if number >= came {
                        receiver.on_segment(last + RTT / 2, &syn);
                    }
                    last = sender.next_timeout().unwrap();
                    sender.on_timeout(last);
                }
                sender.on_ack(last + RTT, &receiver.poll(last + RTT).unwrap());
                let other = TcpParams { pacing_avoidance: 110, ..params.clone() };
                sender.change(last + RTT, &params, &other, 1);
                let first = sender.poll(last + RTT).unwrap();
                assert_eq!(first.ecn != Ecn::NotEct, uses, "{control} {ecn:?} {came}");
                assert_eq!(sender.control.needs_ecn(), uses && control == "dctcp");
                sender.on_ack(last + RTT * 2, &Ack { ack: 1448, ece: true, ..Ack::default() });
                let reduces = uses && ecn != EcnMode::Accurate;
                assert_eq!(sender.conn.stats.ecn_reductions > 0, reduces);
            }
        }
    }

    /// tcp_ecn_send, of probes of a closed window: TCP_CONG_NEEDS_ECN.
    #[test]
    fn all_of_dctcp_is_ecn_capable() {
        for (control, ecn) in [("cubic", Ecn::NotEct), ("dctcp", Ecn::Ect0)] {
            let params = TcpParams::of_profile(Profile::Linux6).unwrap();
            let mut params = TcpParams { ecn: EcnMode::Dctcp, ..params };
            params.set("congestion_control", &control.into()).unwrap();
            let mut sender = LinuxSender::new(&params, Some(100_000), 1);
            sender.open(at(0));
            assert_eq!(sender.poll(at(0)).unwrap().ecn, ecn);
            sender.on_ack(at(0) + RTT, &Ack { syn: true, ece: true, ..Ack::default() });
            assert!(sender.poll(at(0) + RTT).is_none());
            let probe = sender.next_timeout().unwrap();
            sender.on_timeout(probe);
            let probe = sender.poll(probe).unwrap();
            assert_eq!((probe.len, probe.ecn), (0, ecn));
        }
    }

    /// tcp_try_undo_spurious_syn, tcp_check_req: what the SYN-ACK echoes is the SYN that came first.
    #[test]
    fn a_late_syn_ack_is_no_loss_and_repetitions_keep_the_first_echo() {
        let params = TcpParams::of_profile(Profile::Linux6).unwrap();
        for (came, window) in [(0, 10), (1, 1)] {
            let mut sender = Sender::new(&params, Some(100_000), 1);
            let mut receiver = Receiver::new(&params);
            sender.open(at(20_000));
            let mut last = at(20_000);
            for number in 0..3 {
                let syn = sender.poll(last).unwrap();
                if number >= came {
                    receiver.on_segment(last + RTT / 2, &syn);
                }
                last = sender.next_timeout().unwrap();
                sender.on_timeout(last);
            }
            let answer = receiver.poll(last).unwrap();
            assert_eq!(answer.timestamps.unwrap().value, last);
            sender.on_ack(last + RTT / 2, &answer);
            assert_eq!(sender.cwnd(), window * params.mss.get());
            let first = at(20_000 + 1000 * came);
            let apart =
                (last + RTT / 2 - first).as_nanos().abs_diff(sender.srtt().unwrap().as_nanos());
            assert!(apart < 60_000_000, "{:?}", sender.srtt());
        }
    }

    /// tcp_may_update_window: the first one after the SYN-ACK is no duplicate.
    #[test]
    fn the_first_acknowledgement_is_about_the_window() {
        let mut params = TcpParams::of_profile(Profile::Linux61).unwrap();
        params.recovery = Recovery::NewReno;
        let mut sender = Sender::new(&params, Some(100_000), 1);
        sender.open(at(0));
        let ack = Ack { window: 65_535, ..Ack::default() };
        sender.on_ack(at(0) + RTT, &Ack { syn: true, ..ack });
        let repeats = [2, 3, 3, 3, 3].map(|round| {
            while sender.poll(at(0) + RTT * (round - 1)).is_some() {}
            sender.on_ack(at(0) + RTT * round, &ack);
            sender.stats().fast_retransmits
        });
        assert_eq!(repeats, [0, 0, 0, 1, 1]);
    }

    /// tcp_send_dupack, tcp_oow_rate_limited.
    #[test]
    fn what_is_refused_is_answered_twice_a_second() {
        let params = TcpParams::of_profile(Profile::Linux61).unwrap();
        let mut sender = LinuxSender::new(&params, Some(100_000), 1);
        sender.open(at(0));
        let mut answered = |millis, syn, sent| {
            let timestamps = Some(Timestamps { value: at(sent), echo: at(0) });
            let ack = Ack { syn, window: 65_535, timestamps, ack: 1448, ..Ack::default() };
            sender.on_ack(at(millis), &ack);
            sender.state.paced_until == sender.clock.nanos(at(millis))
        };
        answered(100, true, 50);
        assert_eq!([110, 609, 610].map(|millis| answered(millis, false, 48)), [true, false, true]);
    }

    /// tcp_disordered_ack: of those that a later one has overtaken, only duplicates count.
    #[test]
    fn paws_refuses_acknowledgements_that_came_late() {
        let params = TcpParams::of_profile(Profile::Linux6).unwrap();
        let segments = |number: u64| number * params.mss.get();
        let mut sender = Sender::new(&params, Some(segments(10)), 1);
        sender.open(at(0));
        sender.poll(at(0));
        let mut arrive = |millis, syn, number, sent, block: Option<(u64, u64)>| {
            let mut sack = SackBlocks::default();
            block.into_iter().for_each(|(from, to)| sack.push(segments(from), segments(to)));
            let timestamps = Some(Timestamps { value: at(sent), echo: at(0) });
            let ack = segments(number);
            sender.on_ack(
                at(millis),
                &Ack { ack, syn, window: 65_535, sack, timestamps, ..Ack::default() },
            );
            while sender.poll(at(millis)).is_some() {}
            (
                sender.stats().bytes_acked / params.mss.get(),
                sender.bytes_in_flight() / params.mss.get(),
            )
        };
        assert_eq!(arrive(100, true, 0, 50, None), (0, 10));
        assert_eq!(arrive(200, false, 2, 150, None), (2, 8));
        // Sent before that one: as late as a millisecond, or more.
        assert_eq!(arrive(201, false, 3, 149, None), (3, 7));
        assert_eq!(arrive(202, false, 4, 148, None), (3, 7));
        assert_eq!(arrive(202, false, 1, 148, Some((4, 5))), (3, 7));
        assert_eq!(arrive(202, false, 3, 148, Some((5, 6))), (3, 6));
    }
}
