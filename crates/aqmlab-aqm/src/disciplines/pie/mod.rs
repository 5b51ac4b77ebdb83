//! PIE: proportional integral controller, enhanced.
//!
//! # Model
//! A timer compares the delay of the queue with the target and with its last
//! value, and moves the drop probability by both; arriving packets meet it.
//! The steps are smaller while the probability is small, short bursts are let
//! through, and drops are kept apart from each other.
//!
//! # Sources
//! - `variant = rfc8033`: RFC 8033, sections 4 and 5, appendices A and B.
//! - `variant = linux`: the qdisc of Linux.
//!
//! # Differences
//! Each form's file, `rfc8033.rs` and `pie/linux.rs`, lists its own.

use alloc::{boxed::Box, format, string::String, string::ToString, vec::Vec};

pub(crate) mod linux;
mod rfc8033;

use aqmlab_core::words::{Dialect, Form, Word};
use aqmlab_core::{Bytes, Component, Error, Limit, Rate, Result, Span, choices, params};

use self::linux::PieLinux;
use self::rfc8033::Pie;
use crate::discipline::{Context, Discipline, LinkEnv, Machine, Note, QueueDiscipline};
use crate::one_queue::{Aqm, OneQueue};

choices! {
    /// Where the delay of the queue is taken from.
    pub enum DelaySource {
        /// The time that the last packet sent has spent in the queue.
        Timestamps = "timestamps",
        /// The backlog and the average time that a threshold of bytes takes to leave.
        Rate = "rate",
    }
}

choices! {
    /// When the drop probability decays by 2 % at an update.
    pub enum Decay {
        /// After two delays of zero: section 4.2 and appendix A.
        Zero = "zero",
        /// After two delays below half the target: appendix B.
        HalfTarget = "half-target",
    }
}

choices! {
    /// By what the steps are divided while the probability is small.
    pub enum Tuning {
        /// By 2048 below a millionth, and by less and less up to 0.1.
        Rfc8033 = "rfc8033",
        /// By 8 below 0.01 and by 2 below 0.1, as before the RFC.
        Draft = "draft",
    }
}

choices! {
    /// The numbers that PIE computes with.
    pub enum PieArithmetic {
        /// Floating point, as the RFC's pseudo-code reads.
        Rfc8033 = "rfc8033",
        /// Linux's integers; the probability may go above 1 there.
        Linux = "linux",
        /// The same with the probability limited to 1.
        LinuxClamped = "linux-clamped",
    }
}

params! {
    /// Parameters of PIE.
    pub struct PieParams {
        /// The delay to keep, QDELAY_REF.
        target: Span = Span::from_millis(15), in Span::from_nanos(128) => Span::from_secs(100),
            source "RFC 8033, section 4.2";
        /// Time between two updates of the drop probability, T_UPDATE.
        tupdate: Span = Span::from_millis(15), in Span::from_micros(1) => Span::from_secs(100),
            source "RFC 8033, section 4.2";
        /// Length of a burst that passes without early drops.
        max_burst: Span = Span::from_millis(150), in Span::ZERO => Span::from_secs(100),
            source "RFC 8033, section 4.4";
        /// Weight of the deviation from the target, per second; Linux rounds it to 1/16.
        alpha: f64 = 0.125, in 0.0 => 1e3, source "RFC 8033, appendix A";
        /// Weight of the trend, per second; Linux rounds it to 1/16.
        beta: f64 = 1.25, in 0.0 => 1e3, source "RFC 8033, appendix A";
        /// Capacity of the queue.
        limit: Limit = Limit::Packets(1000), source "tc-pie(8)";
        /// Additional limit in bytes; `none`: no additional limit.
        byte_limit: Option<Bytes> = None, in Some(Bytes::new(1)) => Some(Bytes::new(1 << 40)),
            source "mahimahi, as for droptail";
        /// Source of the delay estimate.
        delay: DelaySource = DelaySource::Timestamps, source "RFC 8033, sections 4.3 and 5.2";
        /// Backlog needed to start a departure rate sample, and the amount that must leave
        /// to complete it.
        dq_threshold: Bytes = Bytes::new(16_384), in Bytes::new(1) => Bytes::new(65_536),
            source "RFC 8033, section 5.2";
        /// Spaces drops evenly (de-randomisation).
        derandomize: bool = true, source "RFC 8033, section 5.4; always in Linux";
        /// The accumulated probability below which no packet is dropped; fixed in Linux.
        prob_low: f64 = 0.85, in 0.0 => 1e6, source "RFC 8033, section 5.4";
        /// The accumulated probability from which a packet is dropped for certain; fixed in Linux.
        prob_high: f64 = 8.5, in 0.0 => 1e6, source "RFC 8033, section 5.4";
        /// Whether the probability rises by at most 0.02 at a time once it is 0.1.
        cap: bool = true, source "RFC 8033, section 5.5; always in Linux";
        /// Scaling of the steps while the probability is small; fixed in Linux.
        tuning: Tuning = Tuning::Rfc8033, source "RFC 8033, section 4.2; HPSR 2013, section IV";
        /// Condition under which the probability decays; Linux has a different one.
        decay: Decay = Decay::Zero, source "RFC 8033, section 4.2, appendices A and B";
        /// The part of the limit from which a queue makes PIE active (the RFC suggests 1/3);
        /// `none`, and Linux, for always active.
        activation: Option<f64> = None, in Some(0.0) => Some(1.0), source "RFC 8033, section 5.3";
        /// Marks ECN-capable packets instead of dropping them early.
        ecn: bool = false, source "RFC 8033, section 5.1; tc-pie(8)";
        /// The drop probability from which ECN-capable packets are dropped as well.
        max_ecn: f64 = 0.1, in 0.0 => 1.0, source "RFC 8033, section 5.1; fixed in Linux";
        /// Drops larger packets with a larger probability.
        by_size: bool = false, source "tc-pie(8), bytemode";
        /// The mean packet size: nothing is dropped early from a queue of two packets;
        /// `none` for the largest packet of the link.
        mean_packet: Option<Bytes> = None, in Some(Bytes::new(1)) => Some(Bytes::new(1_000_000)),
            source "RFC 8033, section 4.1; the MTU in Linux";
        /// The numbers that PIE computes with.
        variant: PieArithmetic = PieArithmetic::Rfc8033, source "RFC 8033, appendix B; conformance vectors";
    } words TC
}

/// The words of tc-pie(8) that tc-fq_pie(8) has too.
pub(crate) const TC_WORDS: &[Word] = &[
    Word::value("limit", "limit", Form::Packets),
    Word::value("target", "target", Form::Time),
    Word::value("tupdate", "tupdate", Form::Time),
    Word::value("alpha", "alpha", Form::Sixteenths),
    Word::value("beta", "beta", Form::Sixteenths),
    Word::set("ecn", "ecn", "true"),
    Word::set("noecn", "ecn", "false"),
    Word::set("bytemode", "by_size", "true"),
    Word::set("nobytemode", "by_size", "false"),
    Word::set("dq_rate_estimator", "delay", "rate"),
    Word::set("no_dq_rate_estimator", "delay", "timestamps"),
];

/// tc-pie(8).
const TC: &[Dialect] = &[Dialect {
    kind: "pie",
    source: "tc-pie(8)",
    fixed: &[("variant", "linux")],
    words: &[TC_WORDS],
    ..Dialect::EMPTY
}];

impl Component for PieParams {
    const NAME: &'static str = "pie";
    const SUMMARY: &'static str = "a controller moves the drop probability to keep the delay";

    fn check(&self) -> Result<()> {
        if let Some(part) = self.activation {
            let refuse = |given: String, allowed: &str| {
                Err(Error::not_allowed(given, allowed.to_string()).at("activation"))
            };
            if !(0.0..=1.0).contains(&part) {
                return refuse(part.to_string(), "a number from 0 to 1, or `none`");
            }
            if self.variant != PieArithmetic::Rfc8033 {
                return refuse(part.to_string(), "`none` unless `variant = rfc8033`");
            }
            if self.limit == Limit::Unlimited {
                return refuse(part.to_string(), "`none` with `limit = unlimited`");
            }
        }
        Ok(())
    }
}

impl Discipline for PieParams {
    fn fixed(&self) -> &'static [&'static str] {
        &["variant"]
    }

    fn build(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline> {
        match self.variant {
            PieArithmetic::Rfc8033 => Box::new(Pie::new(self, env)),
            PieArithmetic::Linux | PieArithmetic::LinuxClamped => {
                Box::new(PieLinux::new(self, env))
            }
        }
    }

    fn change(&self, queue: &mut dyn QueueDiscipline, env: &LinkEnv, cx: &mut Context<'_>) {
        // Linux, pie_change: a smaller limit drops from the head; the timer goes on as it is.
        match self.variant {
            PieArithmetic::Rfc8033 => queue.machine::<OneQueue<Pie>>().change(self, env, cx),
            PieArithmetic::Linux | PieArithmetic::LinuxClamped => {
                queue.machine::<OneQueue<PieLinux>>().change(self, env, cx);
            }
        }
    }
}

/// What a run has to remember for the notes at its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// The longest sojourn time.
    pub longest: Span,
    /// ECN-capable packets that were dropped because the probability was high.
    pub ecn_drops: u64,
    pub marks: u64,
}

impl Memory {
    /// The notes that do not depend on the arithmetic.
    pub fn notes(&self, params: &PieParams, env: &LinkEnv) -> Vec<Note> {
        let mut notes = Vec::new();
        let packet = params.mean_packet.unwrap_or(env.mtu);
        let two = env.rate.transmission_time(Bytes::new(2 * packet.get()));
        if two > params.target && self.longest > params.target {
            notes.push(Note {
                id: "pie-target-below-two-packets",
                text: format!(
                    "PIE drops nothing from a queue of two packets of {packet}, which take {two} \
                     on a link of {}: longer than its target of {}, which it cannot keep then. \
                     The drop probability rises all the same. Raise `target`.",
                    env.rate, params.target
                ),
            });
        }
        if self.ecn_drops > self.marks {
            notes.push(Note {
                id: "pie-ecn-drops",
                text:
                    "PIE dropped more ECN-capable packets than it marked: its drop probability was \
                       above `max_ecn`, where it drops them too."
                        .into(),
            });
        }
        notes
    }
}

/// What a reader has to know of a PIE that never had a departure rate.
pub(crate) fn no_rate_sample(threshold: Limit, update: Option<Span>, rate: Rate) -> Note {
    let why = match update {
        Some(update) => format!(
            "a measurement needs {threshold} to leave the queue before the next update, {update} \
             away, and on a link of {rate} that never happened"
        ),
        None => format!(
            "a measurement needs {threshold} to be queued, and on a link of {rate} that never \
             lasted long enough"
        ),
    };
    let remedy = match update {
        Some(_) => "raise `tupdate` or lower `dq_threshold`",
        None => "lower `dq_threshold`, or take the delay from timestamps",
    };
    Note {
        id: "pie-no-rate-sample",
        text: format!(
            "PIE never measured a departure rate: {why}. Without a rate its delay estimate is \
             zero, so it dropped nothing early and worked as a drop-tail queue. To make it work, \
             {remedy}."
        ),
    }
}
