//! Interface of congestion controls.
//!
//! A congestion control receives acknowledgements and congestion events as structs; it returns a
//! window and, if it paces, a rate. It does not see sequence numbers: the sender detects losses.
//!
//! # What a control must do
//!
//! One file beside this one, and one line in `controls!` in `mod.rs`, which declares
//! the module and implements [`ControlParams`]. The file has the control's parameters, declared with
//! `params!`, which implement [`Component`](aqmlab_core::Component); and a type that implements
//! [`CongestionControl`], derives `Clone` and `Debug`, and has a `new` that takes the parameters and
//! the [`Setup`]. A control in another crate implements [`ControlParams`] itself:
//! `examples/rust-control` is one.
//!
//! 1. [`window`](CongestionControl::window) and
//!    [`ssthresh`](CongestionControl::ssthresh) answer in bytes at any time,
//!    from before the first acknowledgement (`Setup::initial_window`). The
//!    sender never goes below one segment. They are asked for each segment, so
//!    they return a field.
//! 2. [`on_ack`](CongestionControl::on_ack) is called for every acknowledgement that delivers data,
//!    cumulatively or selectively, or reports CE marks. `acked` is 0 if it reports only by SACK: a
//!    control that counts cumulative acknowledgements returns immediately. `in_recovery` is set
//!    from the loss (with PRR, also from an ECN echo) until the data in flight at that time are
//!    acknowledged: windows do not grow. It is not set after a timeout, since slow start continues,
//!    but `in_loss` is.
//! 3. [`on_congestion`](CongestionControl::on_congestion) is called at most once per window of data
//!    for losses and ECN echoes, after the `on_ack` of the same acknowledgement, and at each
//!    timeout. The control sets ssthresh and the window there. During recovery PRR may lead from
//!    the old window to the new one, which `window` returns. A control that sets its window itself
//!    in recoveries returns true from
//!    [`recovers_by_itself`](CongestionControl::recovers_by_itself).
//! 4. [`on_undo`](CongestionControl::on_undo): the last `Loss` or `Timeout` was spurious. The
//!    control restores window and ssthresh, or larger values (RFC 5682, RFC 4015). Keep the old
//!    values in `on_congestion`.
//! 5. [`on_sent`](CongestionControl::on_sent) comes for each data segment, and
//!    [`on_lost`](CongestionControl::on_lost) for each that is taken for lost
//!    (the latter only with rate samples).
//!    [`on_connected`](CongestionControl::on_connected) comes before the first,
//!    and [`on_idle`](CongestionControl::on_idle) when the window was not used,
//!    as before the first of them after an idle time.
//! 6. A control that needs delivery rates returns true from
//!    [`needs_rate_samples`](CongestionControl::needs_rate_samples): the sender then keeps a record
//!    for each segment, fills in [`AckSample::rate`] and counts rounds by delivered data. For other
//!    controls it counts rounds by sequence numbers and keeps no records.
//! 7. A control that paces returns a [`pacing_rate`](CongestionControl::pacing_rate)
//!    of bits on the wire; `None` sends at once what the window allows (or at
//!    the sender's own pace, if the transport has `pacing`).
//! 8. [`observe`](CongestionControl::observe) reports further values for recordings of level
//!    `series`, such as `bandwidth_bps` or `alpha`.
//!
//! All of it without allocation, without a clock and without the platform's
//! mathematics (`libm` has it); random numbers start from [`Setup::seed`].

use std::any::Any;

use aqmlab_core::{
    AnyComponent, Config, Error, Rate, Registry, Result, Span, Time, cloneable, dispatched,
};

pub use super::sample::{
    AckSample, Congestion, CongestionEvent, LostSegment, RateSample, Samples, SentSample,
};

dispatched! {
    /// Congestion control; the [module](self) documents its contract.
    pub trait CongestionControl: Send {
        /// Data were delivered, or CE marks reported.
        fn on_ack(&mut self, sample: &AckSample);
        /// Congestion was found.
        fn on_congestion(&mut self, event: &CongestionEvent);
        /// The last loss or timeout was none.
        fn on_undo(&mut self);
        /// The connection is open; the round-trip time is that of the SYN, if it was
        /// sent once.
        fn on_connected(&mut self, _now: Time, _rtt: Option<Span>) {}
        /// The window was not used: it becomes this at most (RFC 5681, section 4.1;
        /// RFC 2861; RFC 7661; with `restart_after_idle` or `window_validation`).
        fn on_idle(&mut self, _restart_window: u64) {}
        /// The slow start threshold becomes this (the same; only with
        /// `window_validation`).
        fn set_ssthresh(&mut self, _ssthresh: u64) {}
        /// A data segment is sent.
        fn on_sent(&mut self, _sent: &SentSample) {}
        /// A segment is taken for lost; only with rate samples.
        fn on_lost(&mut self, _lost: &LostSegment) {}
        /// Recovery without SACK ends with this much in flight (RFC 6582,
        /// section 3.2, step 3: full acknowledgements).
        fn on_recovery_exit(&mut self, _in_flight: u64) {}
        /// The congestion window in bytes.
        fn window(&self) -> u64;
        /// The slow start threshold in bytes.
        fn ssthresh(&self) -> u64;
        /// The rate to pace at, in bits on the wire; `None` does not pace.
        fn pacing_rate(&self) -> Option<Rate> {
            None
        }
        /// Returns true if the control needs rate samples.
        fn needs_rate_samples(&self) -> bool {
            false
        }
        /// Whether the window holds in recoveries as well, without PRR.
        fn recovers_by_itself(&self) -> bool {
            false
        }
        /// Reports further values to record.
        fn observe(&self, _see: &mut dyn FnMut(&'static str, f64)) {}
    }
    passed on by pass_control
}

/// A congestion control of any type. Every control that is `Clone` is one.
pub trait ExternalControl: CongestionControl + Any {
    /// Returns a copy in the same state, for snapshots; `None` if it cannot be copied.
    fn boxed_clone(&self) -> Option<Box<dyn ExternalControl>>;
}

impl<C: CongestionControl + Clone + 'static> ExternalControl for C {
    fn boxed_clone(&self) -> Option<Box<dyn ExternalControl>> {
        Some(Box::new(self.clone()))
    }
}

cloneable!(pub trait CloneParams of ControlParams);

/// Parameters of a congestion control, which build it, and a
/// [`Component`](aqmlab_core::Component). `controls!` implements this for those of the catalogue.
pub trait ControlParams: AnyComponent + CloneParams {
    /// Builds the control: for each connection, and again if its SYN was lost.
    fn build(&self, setup: &Setup) -> Box<dyn ExternalControl>;

    /// Returns the seconds from one loss to the next on a path that loses a packet at a window of
    /// so many segments, with a mean round-trip time in seconds; `None` if it has no such cycle.
    /// So many segments are acknowledged at once.
    fn cycle(&self, _window: f64, _rtt: f64, _acknowledged: u64) -> Option<f64> {
        None
    }
}

/// A congestion control with its parameters, as a scenario names it.
pub type CongestionConfig = Config<dyn ControlParams>;

/// Congestion controls of other crates. Without any, only the built-in ones are known.
pub type Controls = Registry<dyn ControlParams>;

/// Inputs of a congestion control, in addition to its own parameters.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Setup {
    /// SMSS (RFC 5681, section 2).
    pub mss: u64,
    /// First window in bytes: one segment if the SYN was lost.
    pub initial_window: u64,
    /// First slow start threshold in bytes.
    pub initial_ssthresh: u64,
    /// Seed of random numbers, different for each flow and replication.
    pub seed: u64,
    /// Bytes of all headers of a packet.
    pub header: u64,
    /// True if the sender paces controls without a rate.
    pub is_paced: bool,
    /// True if the receiver acknowledges selectively (SACK).
    pub has_sack: bool,
}

/// Refuses what cannot be kept of a window.
pub(super) fn check_beta_ecn(beta_ecn: Option<f64>) -> Result<()> {
    match beta_ecn {
        Some(beta) if !(beta > 0.0 && beta <= 1.0) => {
            let allowed = "above 0 and at most 1, or `none`";
            Err(Error::not_allowed(beta, allowed).at("beta_ecn"))
        }
        _ => Ok(()),
    }
}
