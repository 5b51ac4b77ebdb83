//! Congestion controls, behind one interface.
//!
//! A congestion control receives acknowledgements and congestion events as structs; it returns a
//! window and, if it paces, a rate. It does not see sequence numbers: the sender detects losses.
//!
//! # What a control must do
//!
//! One file beside this one, and one line in `controls!` below, which declares
//! the module too. The file has the control's parameters, declared with
//! `params!`, which implement [`ControlParams`]; and a type that has
//! `fn new(params: &ItsParams, setup: &Setup) -> Self`, implements
//! [`CongestionControl`] and derives `Clone` and `Debug`. (It may begin in a crate of its
//! own, where it is written in the same way: see [`custom`].)
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

mod bbr_parts;
mod config;
mod delay;
mod sample;
pub(crate) mod slow_start;
#[cfg(test)]
mod testing;
mod window;

use aqmlab_core::{Entry, Error, Params, Rate, Result, Span, Time, catalogue, dispatched};

use crate::params::TcpParams;
pub use custom::{Controls, CustomControl, ExternalControl};
pub use sample::{AckSample, Congestion, CongestionEvent, LostSegment, RateSample, SentSample};

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

// After the trait: it is passed on there.
pub mod custom;

/// The parameters of a congestion control.
pub trait ControlParams: Params {
    /// The name in scenario files.
    const NAME: &'static str;
    /// One-line description.
    const SUMMARY: &'static str;

    /// Checks what single ranges cannot say.
    ///
    /// # Errors
    /// Returns an error if the parameters contradict each other.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// The seconds from one loss to the next on a path that holds a window of so
    /// many segments and no queue; `None` if it has no such cycle. A round-trip
    /// time is in seconds, and so many segments are acknowledged at once.
    fn cycle(&self, _window: f64, _rtt: f64, _acknowledged: u64) -> Option<f64> {
        None
    }
}

/// Refuses what cannot be kept of a window.
fn check_beta_ecn(beta_ecn: Option<f64>) -> Result<()> {
    match beta_ecn {
        Some(beta) if !(beta > 0.0 && beta <= 1.0) => {
            let allowed = "above 0 and at most 1, or `none`";
            Err(Error::not_allowed(beta, allowed).at("beta_ecn"))
        }
        _ => Ok(()),
    }
}

/// Inputs of a congestion control, in addition to its own parameters.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Setup<'a> {
    /// SMSS (RFC 5681, section 2).
    pub mss: u64,
    /// The first window in bytes: one segment if the SYN was lost.
    pub initial_window: u64,
    /// The first slow start threshold in bytes.
    pub initial_ssthresh: u64,
    /// For random numbers: another one for each flow and replication.
    pub seed: u64,
    /// The transport's parameters.
    pub transport: &'a TcpParams,
}

impl<'a> Setup<'a> {
    /// Returns the setup for these parameters.
    pub fn new(transport: &'a TcpParams, initial_window: u64, seed: u64) -> Self {
        Setup {
            mss: transport.mss.get(),
            initial_window,
            initial_ssthresh: transport.initial_ssthresh.map_or(u64::MAX / 4, |bytes| bytes.get()),
            seed,
            transport,
        }
    }
}

macro_rules! controls {
    ($($Control:ident($module:ident::$Params:ident)),+ $(,)?) => {
        catalogue! {
            /// A congestion control with its parameters, ready to be made.
            pub enum CongestionConfig of ControlParams, or dyn CustomControl;
            what "congestion control", key "algorithm", example "cubic";
            presets &[], elsewhere (|_| None);
            each each_config;
            $( $Control($module::$Params), )+
        }

        /// The state of one of them: dispatched without a pointer, as it is
        /// called for each acknowledgement.
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant)] // there is one of them in each sender
        pub(crate) enum Control {
            $( $Control($module::$Control), )+
            Custom(custom::State),
        }

        impl Control {
            pub fn new(config: &CongestionConfig, setup: &Setup) -> Self {
                match config {
                    $( CongestionConfig::$Control(params) => {
                        Control::$Control(<$module::$Control>::new(params, setup))
                    } )+
                    CongestionConfig::Custom(custom) => {
                        Control::Custom(custom::State::new(custom.config(), setup))
                    }
                }
            }
        }

        impl Control {
            /// True if its state can be copied: a custom control may refuse.
            pub fn is_cloneable(&self) -> bool {
                !matches!(self, Control::Custom(state) if !state.is_cloneable())
            }
        }

        /// Calls a method of the one there is.
        macro_rules! each {
            ($self:ident, $state:ident => $call:expr) => {
                match $self {
                    $( Control::$Control($state) => $call, )+
                    Control::Custom($state) => $call,
                }
            };
        }
    };
}

// One line a congestion control.
controls! {
    Reno(reno::RenoParams),
    Cubic(cubic::CubicParams),
    Vegas(vegas::VegasParams),
    Westwood(westwood::WestwoodParams),
    Compound(compound::CompoundParams),
    Ledbat(ledbat::LedbatParams),
    LedbatPp(ledbat_pp::LedbatPpParams),
    Scalable(scalable::ScalableParams),
    HighSpeed(highspeed::HighSpeedParams),
    Dctcp(dctcp::DctcpParams),
    Prague(prague::PragueParams),
    Bbr(bbr::BbrParams),
    Bbr3(bbr3::Bbr3Params),
    Relentless(relentless::RelentlessParams),
    Cbr(cbr::CbrParams),
}

pass_control!(Control, each);

/// All congestion controls.
pub fn entries() -> Vec<Entry> {
    CongestionConfig::entries()
}

impl CongestionConfig {
    /// The seconds from one loss to the next with a window of so many segments,
    /// see [`ControlParams::cycle`].
    pub fn cycle(&self, window: f64, rtt: f64, acknowledged: u64) -> Option<f64> {
        each_config!(self, params => params.cycle(window, rtt, acknowledged), _custom => None)
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{ack, transport};
    use super::*;

    /// RFC 5681, section 4.1. BBR and Prague pace data after an idle time and have rules of their
    /// own (Linux exempts all with `cong_control`); a constant rate has none.
    #[test]
    fn windows_restart_after_idle_times() {
        let others = ["bbr", "bbr3", "prague", "cbr"];
        for entry in entries() {
            let config = CongestionConfig::named(entry.name).unwrap();
            let mut control = Control::new(&config, &Setup::new(&transport(), 10_000, 0));
            for _ in 0..30 {
                let rtt = Some(Span::from_millis(100));
                control.on_ack(&AckSample { rtt, smoothed_rtt: rtt, min_rtt: rtt, ..ack(1000) });
            }
            let window = control.window();
            control.on_idle(10_000);
            let restarts = control.window() == 10_000;
            assert_eq!(restarts, !others.contains(&entry.name), "{}: {window}", entry.name);
            control.on_idle(20_000);
            assert!(!restarts || control.window() == 10_000, "{}: it shrinks only", entry.name);
        }
    }
}
