//! Steered: window and pacing rate are set from outside, during the connection.
//!
//! For controllers outside of the simulation, such as learned ones: between two times they read the
//! counters that [`observe`](CongestionControl::observe) reports, and set the parameters anew. Losses,
//! marks, delays and timeouts change nothing.
//!
//! # Sources
//! None. Controllers of this kind are Aurora (Jay et al., ICML 2019), which sets the rate, and Orca
//! (Abbasloo et al., SIGCOMM 2020), which sets the window.
//!
//! # Differences
//! 1. The sender retransmits lost data as for any control; the window also limits retransmissions.
//! 2. With Linux's sender the window is in whole segments, and the kernel's recovery from a timeout
//!    begins with one segment.

use aqmlab_core::{Bytes, Component, Error, Limit, Rate, Result, Span, params};

use super::control::{AckSample, Congestion, CongestionControl, CongestionEvent, Setup};

params! {
    /// Parameters of a steered sender.
    pub struct SteeredParams {
        /// The congestion window: segments (10p), bytes (14600b), or `unlimited` with a rate.
        window: Limit = Limit::Packets(10), source "the controller's choice";
        /// The rate of all segments, in bits on the wire; `none` does not pace.
        pacing_rate: Option<Rate> = None,
            in Some(Rate::from_bps(1)) => Some(Rate::from_bps(10_000_000_000_000)),
            source "the controller's choice";
    }
}

impl Component for SteeredParams {
    const NAME: &'static str = "steered";
    const SUMMARY: &'static str = "a window and a pacing rate that are set from outside";

    fn check(&self) -> Result<()> {
        match self.window {
            Limit::Bdp(_) => {
                let allowed = "segments (10p), bytes (14600b) or unlimited";
                Err(Error::not_allowed(self.window, allowed).at("window"))
            }
            Limit::Unlimited if self.pacing_rate.is_none() => {
                let allowed = "segments (10p) or bytes (14600b), or also a pacing_rate";
                Err(Error::not_allowed(self.window, allowed).at("window"))
            }
            Limit::Packets(0) => Err(Error::not_allowed(self.window, "at least 1p").at("window")),
            Limit::Bytes(bytes) if bytes == Bytes::new(0) => {
                Err(Error::not_allowed(self.window, "at least 1b").at("window"))
            }
            _ => Ok(()),
        }
    }
}

/// Threshold that no window reaches, and far from overflow.
const NONE: u64 = u64::MAX / 4;

/// The state: counters of the connection.
#[derive(Clone, Debug)]
pub(crate) struct Steered {
    window: u64,
    pacing_rate: Option<Rate>,
    delivered: u64,
    lost: u64,
    acks: u64,
    marked: u64,
    timeouts: u64,
    rtt: Span,
    min_rtt: Option<Span>,
    rtt_sum: Span,
    rtt_samples: u64,
    /// Recorded acknowledgements; `None`: none are recorded.
    pub samples: Option<Vec<AckSample>>,
}

impl Steered {
    pub fn new(params: &SteeredParams, setup: &Setup) -> Self {
        let mut steered = Steered {
            window: 0,
            pacing_rate: None,
            delivered: 0,
            lost: 0,
            acks: 0,
            marked: 0,
            timeouts: 0,
            rtt: Span::ZERO,
            min_rtt: None,
            rtt_sum: Span::ZERO,
            rtt_samples: 0,
            samples: None,
        };
        steered.steer(params, setup.mss);
        steered
    }

    /// Sets window and rate; the counters continue.
    pub fn steer(&mut self, params: &SteeredParams, mss: u64) {
        self.window = match params.window {
            Limit::Packets(packets) => packets.saturating_mul(mss).min(NONE),
            Limit::Bytes(bytes) => bytes.get().min(NONE),
            Limit::Bdp(_) | Limit::Unlimited => NONE,
        };
        self.pacing_rate = params.pacing_rate;
    }
}

impl CongestionControl for Steered {
    fn on_ack(&mut self, sample: &AckSample) {
        self.acks += 1;
        self.delivered += sample.delivered;
        self.lost += sample.lost;
        self.marked += u64::from(sample.ece);
        if let Some(rtt) = sample.rtt {
            self.rtt = rtt;
            self.rtt_sum += rtt;
            self.rtt_samples += 1;
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        }
        if let Some(samples) = &mut self.samples {
            samples.push(*sample);
        }
    }
    fn on_congestion(&mut self, event: &CongestionEvent) {
        self.timeouts += u64::from(matches!(event.kind, Congestion::Timeout { .. }));
    }
    fn on_undo(&mut self) {}
    #[inline]
    fn window(&self) -> u64 {
        self.window
    }
    fn ssthresh(&self) -> u64 {
        NONE
    }
    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing_rate
    }
    fn needs_rate_samples(&self) -> bool {
        true
    }
    fn recovers_by_itself(&self) -> bool {
        true
    }
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("acked_bytes", self.delivered as f64);
        see("lost_bytes", self.lost as f64);
        see("acks", self.acks as f64);
        see("marked_acks", self.marked as f64);
        see("timeouts", self.timeouts as f64);
        see("rtt_samples", self.rtt_samples as f64);
        see("rtt_sum_s", self.rtt_sum.as_secs_f64());
        if let Some(min_rtt) = self.min_rtt {
            see("rtt_s", self.rtt.as_secs_f64());
            see("min_rtt_s", min_rtt.as_secs_f64());
        }
    }
}
