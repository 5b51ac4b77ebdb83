//! DualPI2: two queues coupled by one controller.
//!
//! # Model
//! L4S packets and classic packets have a queue each and share the link by a
//! weighted round robin that nearly always prefers L4S, or by a time-shifted
//! FIFO. A proportional integral controller moves one base probability p'.
//! Classic packets are dropped or marked with p'^2, L4S packets are marked
//! with k p' or, if that is more, by how long they waited. On overload (k p'
//! reaches 1) packets of either queue are dropped with p'^2, and L4S packets
//! that are not are marked.
//!
//! # Sources
//! - RFC 9332: sections 2.4 and 4.2, appendix A (with the scheduler of appendix
//!   B): `variant = rfc9332`, see the file `rfc9332.rs`.
//! - `variant = linux`: the qdisc of Linux, see the file `linux.rs`.
//!
//! # Differences
//! Each form's file lists its own.

use alloc::{boxed::Box, format, string::String, string::ToString, vec::Vec};

mod linux;
mod rfc9332;

use aqmlab_core::words::{Dialect, Effect, Form, Given, Settings, Word};
use aqmlab_core::{
    Component, Ecn, Error, Limit, Packet, ParamType, Result, Span, Time, choices, math, params,
};

use crate::discipline::{Backlog, Context, Discipline, LinkEnv, Note, QueueDiscipline, Reason};
use crate::fifo::Fifo;

choices! {
    /// Whose form of the algorithm.
    pub enum DualPi2Form {
        /// The pseudo-code of the RFC, in floating point.
        Rfc9332 = "rfc9332",
        /// Linux's integers and draws.
        Linux = "linux",
    }
}

choices! {
    /// Classification of packets as L4S.
        pub enum Classifier {
        /// ECT(1) and CE.
        L4s = "l4s",
        /// Any ECN-capable packet.
        AnyEct = "any-ect",
    }
}

choices! {
    /// Choice of the queue that sends next.
    pub enum Scheduler {
        /// A weighted round robin: L4S but for the share of the classic queue.
        Wrr = "wrr",
        /// A time-shifted FIFO: the head that waited longest, L4S some time ahead.
        TsFifo = "ts-fifo",
    }
}

params! {
    /// Parameters of DualPI2.
    pub struct DualPi2Params {
        /// Whose form of the algorithm.
        variant: DualPi2Form = DualPi2Form::Rfc9332, source "RFC 9332, appendix A; conformance vectors";
        /// The delay to keep in the classic queue.
        target: Span = Span::from_millis(15), in Span::ZERO => Span::from_secs(100),
            source "RFC 9332, appendix A.1";
        /// The longest round-trip time to be stable with, RTT_max; rfc9332 only.
        rtt_max: Span = Span::from_millis(100), in Span::from_micros(10) => Span::from_secs(100),
            source "RFC 9332, appendix A.1";
        /// Time between two updates of the base probability, Tupdate; `none` for the smaller of
        /// target and rtt_max / 3, and with Linux for 16 ms.
        tupdate: Option<Span> = None, in Some(Span::from_micros(1)) => Some(Span::from_secs(100)),
            source "RFC 9332, appendix A.1; tc-dualpi2(8)";
        /// Integral gain in Hz; `none` for 0.1 tupdate / rtt_max^2, and with Linux, which truncates
        /// it to 1/256, for 0.16.
        alpha: Option<f64> = None, in Some(0.0) => Some(1e3),
            source "RFC 9332, appendix A.1; tc-dualpi2(8)";
        /// Proportional gain in Hz; `none` for 0.3 / rtt_max, and with Linux, which truncates it to
        /// 1/256, for 3.2.
        beta: Option<f64> = None, in Some(0.0) => Some(1e3),
            source "RFC 9332, appendix A.1; tc-dualpi2(8)";
        /// Total capacity of both queues; `none`: 250 ms at the link's rate, with Linux
        /// 10000 packets.
        limit: Option<Limit> = None, source "RFC 9332, appendix A.1; tc-dualpi2(8)";
        /// The coupling factor k: how many times the base probability L4S packets are marked with.
        coupling: u64 = 2, in 1 => 255, source "RFC 9332, section 2.1 and appendix A.1";
        /// From this sojourn time on L4S packets are marked: where the ramp begins, minTh;
        /// rfc9332 only.
        min_threshold: Span = Span::from_micros(800), in Span::ZERO => Span::from_secs(100),
            source "RFC 9332, appendix A.1";
        /// Length of the ramp over which marking rises to 1; 0: a step; rfc9332 only.
        range: Span = Span::from_micros(400), in Span::ZERO => Span::from_secs(100),
            source "RFC 9332, appendix A.1";
        /// Packets in the L4S queue, with the one that leaves, up to which the ramp or step does
        /// not apply, Th_len; rfc9332 only.
        th_len: u64 = 1, in 0 => 1_000_000, source "RFC 9332, appendix A.2";
        /// A step at this sojourn time; `none` for the ramp, and with Linux for 1 ms.
        step: Option<Span> = None, in Some(Span::ZERO) => Some(Span::from_secs(100)),
            source "RFC 9332, appendix A.1, note c; tc-dualpi2(8)";
        /// Instead of the step in time: L4S packets are marked that leave more packets than this
        /// behind; linux only.
        step_packets: Option<u64> = None, in Some(0) => Some(1_000_000), source "tc-dualpi2(8)";
        /// The L4S packets that have to be queued on arrival for the step to apply; linux only.
        min_qlen_step: u64 = 0, in 0 => 1_000_000, source "tc-dualpi2(8)";
        /// Drops packets of either queue on overload; otherwise the probabilities are capped below
        /// overload.
        drop_overload: bool = true, source "RFC 9332, section 4.2.3; tc-dualpi2(8)";
        /// Drops and marks on arrival instead of departure; linux only.
        drop_early: bool = false, source "tc-dualpi2(8)";
        /// Spaces drops and marks evenly instead of at random; rfc9332 only.
        derandomize: bool = true, source "RFC 9332, appendix A.1, recur";
        /// Scheduler of the two queues; Linux has only the round robin.
        scheduler: Scheduler = Scheduler::Wrr, source "RFC 9332, section 4.2.2 and appendix A.2";
        /// The classic queue's share of the link while both have packets, in percent; `none` for
        /// 1/16, and with Linux for 10.
        c_protection: Option<f64> = None, in Some(0.0) => Some(100.0),
            source "RFC 9332, appendix A.2; tc-dualpi2(8)";
        /// Time advantage of L4S packets in the time-shifted FIFO.
        tshift: Span = Span::from_millis(50), in Span::ZERO => Span::from_secs(100),
            source "RFC 9332, appendix A.2";
        /// Classification of packets as L4S.
        classifier: Classifier = Classifier::L4s, source "RFC 9332, section 2.3; tc-dualpi2(8)";
    } words TC
}

/// tc-dualpi2(8). Linux's form of the algorithm is `variant = linux`.
const TC: &[Dialect] = &[Dialect {
    kind: "dualpi2",
    source: "tc-dualpi2(8)",
    fixed: &[("variant", "linux")],
    words: &[&[
        Word::value("limit", "limit", Form::Packets),
        Word::value("target", "target", Form::Time),
        Word::value("tupdate", "tupdate", Form::Time),
        Word::value("alpha", "alpha", Form::Plain),
        Word::value("beta", "beta", Form::Plain),
        Word::value("coupling_factor", "coupling", Form::Plain),
        Word::value("step_thresh", "step_packets", Form::CountOfPackets),
        Word::value("step_thresh", "step", Form::Time),
        Word::value("min_qlen_step", "min_qlen_step", Form::Plain),
        Word::set("drop_on_overload", "drop_overload", "true"),
        Word::set("overflow", "drop_overload", "false"),
        Word::set("drop_enqueue", "drop_early", "true"),
        Word::set("drop_dequeue", "drop_early", "false"),
        Word::set("l4s_ect", "classifier", "l4s"),
        Word::set("any_ect", "classifier", "any-ect"),
        Word::value("classic_protection", "c_protection", Form::Percent),
        Word::ignored("split_gso", false, "packets are never aggregated"),
        Word::ignored("no_split_gso", false, "packets are never aggregated"),
        Word::refused("memlimit", true, "the memory of packets is not modelled"),
        Word { word: "max_rtt", effect: Effect::Derived { key: "beta", write: |_| None } },
        Word { word: "typical_rtt", effect: Effect::Derived { key: "target", write: |_| None } },
    ]],
    finish: Some(derive),
    ..Dialect::EMPTY
}];

/// Derives target, update interval and gains from round-trip times as `dualpi2_parse_opt` of
/// iproute2 does: in whole microseconds, a typical one of a sixth of the longest.
fn derive(settings: &mut dyn Settings, given: &Given<'_>) -> Result<()> {
    let read = |word: &str| {
        given.derived(word).map(|text| match Span::parse(&text.into()) {
            Ok(span) if span >= Span::from_micros(1) => Ok(span.as_nanos() / 1000),
            Ok(span) => Err(Error::not_allowed(span, "a time from 1us").at(word)),
            Err(error) => Err(error.at(word)),
        })
    };
    let (longest, typical) = (read("max_rtt").transpose()?, read("typical_rtt").transpose()?);
    let Some(longest) = longest.or(typical.map(|typical| 6 * typical)) else { return Ok(()) };
    let typical = typical.unwrap_or((longest / 6).max(1));
    if typical > longest {
        let given = Span::from_micros(typical);
        return Err(Error::not_allowed(given, "no more than `max_rtt`").at("typical_rtt"));
    }
    let tupdate = typical.min(longest / 3).max(1);
    let micros = longest as f64;
    let (alpha, beta) = (1e5 * tupdate as f64 / (micros * micros), 3e5 / micros);
    // Linux counts gains in 1/256.
    if alpha < 1.0 / 256.0 {
        let given = Span::from_micros(longest);
        let allowed = "a shorter time: `alpha` follows as less than 1/256";
        return Err(Error::not_allowed(given, allowed).at("max_rtt"));
    }
    settings.put("target", &Span::from_micros(typical).to_string())?;
    settings.put("tupdate", &Span::from_micros(tupdate).to_string())?;
    settings.put("alpha", &alpha.to_string())?;
    settings.put("beta", &beta.to_string())
}

impl Component for DualPi2Params {
    const NAME: &'static str = "dualpi2";
    const SUMMARY: &'static str = "a queue for L4S and one for the rest, coupled by PI squared";

    fn check(&self) -> Result<()> {
        let refuse = |key: &str, given: String, allowed: &str| {
            Err(Error::not_allowed(given, allowed.to_string()).at(key))
        };
        if self.tupdate() < Span::from_micros(1) {
            let given = self.tupdate.map_or("none".into(), |span| span.to_string());
            return refuse("tupdate", given, "a time from 1us, also as it follows from `target`");
        }
        for (key, gain) in [("alpha", self.alpha), ("beta", self.beta)] {
            if let Some(gain) = gain.filter(|gain| !(0.0..=1e3).contains(gain)) {
                return refuse(key, gain.to_string(), "a number from 0 to 1000");
            }
        }
        if !(0.0..=100.0).contains(&self.c_protection()) {
            let given = self.c_protection().to_string();
            return refuse("c_protection", given, "a number from 0 to 100");
        }
        match self.variant {
            DualPi2Form::Linux if self.scheduler != Scheduler::Wrr => {
                refuse("scheduler", "ts-fifo".into(), "wrr with `variant = linux`")
            }
            DualPi2Form::Rfc9332 if self.step_packets.is_some() => {
                let given = self.step_packets.to_text();
                refuse("step_packets", given, "none unless `variant = linux`")
            }
            DualPi2Form::Rfc9332 if self.min_qlen_step > 0 => {
                let given = self.min_qlen_step.to_string();
                refuse("min_qlen_step", given, "0 unless `variant = linux`; see `th_len`")
            }
            DualPi2Form::Rfc9332 if self.drop_early => {
                refuse("drop_early", "true".into(), "false unless `variant = linux`")
            }
            _ => Ok(()),
        }
    }
}

impl Discipline for DualPi2Params {
    fn fixed(&self) -> &'static [&'static str] {
        &["variant"]
    }

    fn build(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline> {
        match self.variant {
            DualPi2Form::Rfc9332 => Box::new(rfc9332::DualPi2Rfc::new(self, env)),
            DualPi2Form::Linux => Box::new(linux::DualPi2Linux::new(self, env)),
        }
    }

    fn change(&self, queue: &mut dyn QueueDiscipline, env: &LinkEnv, cx: &mut Context<'_>) {
        // Linux, dualpi2_change: a smaller limit drops from the head of the classic queue.
        match self.variant {
            DualPi2Form::Rfc9332 => queue.machine::<rfc9332::DualPi2Rfc>().change(self, env, cx),
            DualPi2Form::Linux => queue.machine::<linux::DualPi2Linux>().change(self, env, cx),
        }
    }
}

impl DualPi2Params {
    fn tupdate(&self) -> Span {
        self.tupdate.unwrap_or(match self.variant {
            DualPi2Form::Rfc9332 => self.target.min(self.rtt_max / 3),
            DualPi2Form::Linux => Span::from_millis(16),
        })
    }
    fn c_protection(&self) -> f64 {
        self.c_protection.unwrap_or(match self.variant {
            DualPi2Form::Rfc9332 => 100.0 / 16.0,
            DualPi2Form::Linux => 10.0,
        })
    }
}

/// The two queues, and whose turn it is.
#[derive(Clone)]
struct Queues {
    classic: Fifo,
    l4s: Fifo,
    classifier: Classifier,
    scheduler: Scheduler,
    tshift: Span,
    /// The classic queue's part of [`WHOLE`].
    share: i64,
    initial_credit: i64,
    /// Credit of the round robin: above zero, the classic queue sends next. In bytes times `WHOLE`.
    credit: i64,
}

/// The whole link, in steps of a hundredth of a percent.
const WHOLE: i64 = 10_000;

/// A packet that was taken out.
struct Taken {
    packet: Packet,
    is_l4s: bool,
    /// By how much the credit changes if the packet is sent.
    credit: i64,
}

impl Queues {
    fn new(params: &DualPi2Params, mtu: u64) -> Self {
        let share = math::round(params.c_protection() * 100.0) as i64;
        let initial_credit = (2 * share - WHOLE) * mtu as i64;
        Queues {
            classic: Fifo::default(),
            l4s: Fifo::default(),
            classifier: params.classifier,
            scheduler: params.scheduler,
            tshift: params.tshift,
            share,
            initial_credit,
            credit: initial_credit,
        }
    }

    /// Writes other parameters. The credit stays, unless the shares are others (Linux,
    /// dualpi2_calculate_c_protection).
    fn change(&mut self, params: &DualPi2Params, mtu: u64) {
        let Queues { classifier, scheduler, tshift, share, initial_credit, .. } =
            Queues::new(params, mtu);
        if share != self.share {
            self.credit = initial_credit;
        }
        (self.classifier, self.scheduler, self.tshift) = (classifier, scheduler, tshift);
        (self.share, self.initial_credit) = (share, initial_credit);
    }

    /// Drops a packet because the limit has become smaller: from the head of the classic queue,
    /// or else of the other; gives whether it was of the other.
    fn drop_head(&mut self, cx: &mut Context<'_>) -> bool {
        let is_l4s = self.classic.is_empty();
        let queue = if is_l4s { &mut self.l4s } else { &mut self.classic };
        if let Some(head) = queue.pop() {
            cx.drop(head, Reason::Overlimit);
        }
        is_l4s
    }

    fn is_l4s(&self, ecn: Ecn) -> bool {
        match self.classifier {
            Classifier::L4s => matches!(ecn, Ecn::Ect1 | Ecn::Ce),
            Classifier::AnyEct => ecn.is_capable(),
        }
    }

    fn total(&self) -> Backlog {
        let (classic, l4s) = (self.classic.backlog(), self.l4s.backlog());
        Backlog { packets: classic.packets + l4s.packets, bytes: classic.bytes + l4s.bytes }
    }

    /// The ages of the heads, zero for an empty queue: classic and L4S.
    fn ages(&self, now: Time) -> (Span, Span) {
        let age = |queue: &Fifo| queue.head().map_or(Span::ZERO, |head| now - head.arrival());
        (age(&self.classic), age(&self.l4s))
    }

    /// Takes a packet from the queue whose turn it is. The round robin's
    /// credit changes only while both have packets (RFC 9332, appendix A.1).
    fn take(&mut self, now: Time) -> Option<Taken> {
        let (classic_waits, l4s_waits) = (!self.classic.is_empty(), !self.l4s.is_empty());
        let l4s_turn = match self.scheduler {
            Scheduler::Wrr => self.credit <= 0,
            Scheduler::TsFifo => {
                let (classic, l4s) = self.ages(now);
                l4s + self.tshift >= classic
            }
        };
        let is_l4s = l4s_waits && (l4s_turn || !classic_waits);
        let queue = if is_l4s { &mut self.l4s } else { &mut self.classic };
        let Some(packet) = queue.pop() else {
            self.credit = self.initial_credit;
            return None;
        };
        let size = i64::from(packet.size());
        let credit = match (classic_waits && l4s_waits, is_l4s) {
            (true, true) => self.share * size,
            (true, false) => (self.share - WHOLE) * size,
            (false, _) => 0,
        };
        Some(Taken { packet, is_l4s, credit })
    }

    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("classic_packets", self.classic.backlog().packets as f64);
        see("l4s_packets", self.l4s.backlog().packets as f64);
        see("credit", self.credit as f64 / WHOLE as f64);
    }
}

/// Counts of arrivals, of those for the L4S queue, of updates, and of those that left it in
/// overload.
#[derive(Clone, Default)]
struct Seen {
    arrived: u64,
    l4s: u64,
    updates: u64,
    overloads: u64,
}

/// What a reader has to know: that one of the queues had nothing to do, and
/// that the coupling gave way to drops.
fn notes(&Seen { arrived, l4s, updates, overloads }: &Seen) -> Vec<Note> {
    let mut notes = Vec::new();
    if arrived > 0 && (l4s == 0 || l4s == arrived) {
        let (only, idle) = if l4s == 0 { ("classic", "L4S") } else { ("L4S", "classic") };
        notes.push(Note {
            id: "dualpi2-one-queue",
            text: format!(
                "All packets were {only} packets: the {idle} queue stayed empty, and nothing was \
                 coupled or shared. Packets are classified by their ECN field, see `classifier`."
            ),
        });
    }
    if overloads * 10 > updates {
        notes.push(Note {
            id: "dualpi2-overload",
            text: "DualPI2 was overloaded for more than a tenth of the time: packets were dropped \
                   independently of their ECN field, and the coupling of the two queues was not in force."
                .into(),
        });
    }
    notes
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::queue::Queue;
    use crate::testing::{TestPacket, fill, queue, seen};

    #[test]
    fn any_ect_takes_ect0_to_the_l4s_queue() {
        for variant in [DualPi2Form::Rfc9332, DualPi2Form::Linux] {
            for (classifier, l4s) in [(Classifier::L4s, 0.0), (Classifier::AnyEct, 3.0)] {
                let params = DualPi2Params { classifier, variant, ..DualPi2Params::default() };
                let mut queue = queue(&params);
                fill(&mut queue, 3, Ecn::Ect0);
                assert_eq!(seen(&queue, "l4s_packets"), l4s);
            }
        }
    }

    #[test]
    fn the_classic_queue_keeps_its_share() {
        let shares = [
            (DualPi2Form::Rfc9332, None, 1.0 / 16.0),
            (DualPi2Form::Linux, None, 0.1),
            (DualPi2Form::Rfc9332, Some(25.0), 0.25),
            (DualPi2Form::Linux, Some(50.0), 0.5),
        ];
        for (variant, c_protection, expected) in shares {
            let limit = Some(Limit::Unlimited);
            let params = DualPi2Params { variant, c_protection, limit, ..DualPi2Params::default() };
            let mut queue = queue(&params);
            // No time passes, so nothing is dropped.
            for _ in 0..2000 {
                queue.enqueue(Packet::of_ecn(Ecn::Ect1), Time::ZERO);
                queue.enqueue(Packet::of_ecn(Ecn::NotEct), Time::ZERO);
            }
            let classic = (0..2000)
                .filter(|_| queue.dequeue(Time::ZERO).unwrap().ecn() == Ecn::NotEct)
                .count();
            let share = classic as f64 / 2000.0;
            assert!((share - expected).abs() < 0.01, "{variant:?} {c_protection:?}: {share}");
        }
    }

    #[test]
    fn the_time_shifted_fifo_holds_classic_packets_back_by_the_shift() {
        // A classic packet of time 0, L4S packets of 9, 10 and 11 ms, a shift
        // of 10 ms: the L4S packet that came 10 ms later is the last to pass.
        let params = DualPi2Params {
            scheduler: Scheduler::TsFifo,
            tshift: Span::from_millis(10),
            ..DualPi2Params::default()
        };
        let mut queue = queue(&params);
        queue.enqueue(Packet::of_ecn(Ecn::NotEct), Time::ZERO);
        for millis in [9, 10, 11] {
            queue.enqueue(Packet::of_ecn(Ecn::Ect1), Time::ZERO + Span::from_millis(millis));
        }
        let now = Time::ZERO + Span::from_millis(12);
        let mut order = Vec::new();
        while let Some(packet) = queue.dequeue(now) {
            order.push(packet.ecn() == Ecn::NotEct);
        }
        assert_eq!(order, [false, false, true, false]);
    }
    #[test]
    fn an_idle_queue_and_a_long_overload_are_noted() {
        let ids = |arrived, l4s, updates, overloads| -> Vec<&str> {
            notes(&Seen { arrived, l4s, updates, overloads }).iter().map(|note| note.id).collect()
        };
        assert!(ids(0, 0, 0, 0).is_empty() && ids(9, 4, 100, 10).is_empty());
        assert_eq!(ids(9, 9, 100, 10), ["dualpi2-one-queue"]);
        assert_eq!(ids(9, 4, 100, 11), ["dualpi2-overload"]);
        assert!(
            notes(&Seen { arrived: 9, updates: 1, ..Seen::default() })[0]
                .text
                .starts_with("All packets were classic")
        );
    }

    #[test]
    fn an_idle_link_puts_the_l4s_queue_ahead_again() {
        let mut queue = queue(&DualPi2Params::default());
        let credit = |queue: &Queue| seen(queue, "credit");
        // 1/16 against 15/16 of a full packet.
        let initial = -14.0 / 16.0 * 1514.0;
        assert_eq!(credit(&queue), initial);
        for ecn in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect1] {
            queue.enqueue(Packet::of_ecn(ecn), Time::ZERO);
        }
        // An L4S packet beside a classic one earns it a sixteenth; alone
        // neither changes anything.
        queue.dequeue(Time::ZERO).unwrap();
        assert_eq!(credit(&queue), initial + 1500.0 / 16.0);
        queue.dequeue(Time::ZERO).unwrap();
        assert_eq!(credit(&queue), initial + 3000.0 / 16.0);
        queue.dequeue(Time::ZERO).unwrap();
        assert_eq!(credit(&queue), initial + 3000.0 / 16.0);
        assert!(queue.dequeue(Time::ZERO).is_none());
        assert_eq!(credit(&queue), initial);
    }
}
