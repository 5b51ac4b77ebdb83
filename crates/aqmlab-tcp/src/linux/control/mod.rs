//! The kernel's congestion controls: windows in whole segments, told what the kernel tells them.
//!
//! Each is one file of `net/ipv4/tcp_*.c`. The defaults of [`Algorithm`] are Reno's.

mod bbr;
mod cubic;
mod dctcp;
pub(super) mod external;
mod highspeed;
mod vegas;
mod westwood;

use aqmlab_core::Rate;

use super::state::{CaState, Rate as RateSample, State};
use crate::congestion::cubic::CubicParams;
use crate::congestion::{self, CongestionConfig, LostSegment, Setup};
use crate::params::TcpParams;

/// Events other than acknowledgements (`enum tcp_ca_event`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The first segment is sent while nothing is in flight.
    TransmitStart,
    /// The window is reduced after an idle time.
    Restart,
    /// A reduction of the window is over.
    ReductionComplete,
    /// A timeout.
    Loss,
}

/// What an acknowledgement measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    /// In microseconds; -1 for none.
    pub rtt: i64,
}

/// A congestion control of the kernel (`struct tcp_congestion_ops`).
pub(in crate::linux) trait Algorithm {
    /// The connection is open.
    fn init(&mut self, _state: &mut State) {}
    /// The threshold at a loss.
    fn ssthresh(&mut self, state: &mut State) -> u32 {
        (state.cwnd >> 1).max(2)
    }
    /// Segments were acknowledged while the window may grow.
    fn avoid(&mut self, state: &mut State, acked: u32) {
        reno(state, acked);
    }
    /// The window after a reduction that had no reason.
    fn undo(&mut self, state: &mut State) -> u32 {
        state.cwnd.max(state.prior_cwnd)
    }
    /// The congestion machine enters a state; `state` still has the one before.
    fn enter(&mut self, _state: &mut State, _new: CaState) {}
    fn event(&mut self, _state: &mut State, _event: Event) {}
    /// An acknowledgement was measured.
    fn measured(&mut self, _state: &mut State, _sample: &Measured) {}
    /// An acknowledgement came; whether it took the slow path.
    fn acknowledged(&mut self, _state: &mut State, _slow: bool) {}
    /// Sets the window itself, from samples of the rate.
    fn control(&mut self, _state: &mut State, _rate: &RateSample) {}
    fn observe(&self, _see: &mut dyn FnMut(&'static str, f64)) {}
}

/// Slow start and congestion avoidance.
pub(super) fn reno(state: &mut State, mut acked: u32) {
    if !state.is_cwnd_limited() {
        return;
    }
    if state.in_slow_start() {
        acked = state.slow_start(acked);
        if acked == 0 {
            return;
        }
    }
    state.grow(state.cwnd, acked);
}

#[derive(Clone, Debug)]
pub(in crate::linux) struct Reno;
impl Algorithm for Reno {}

/// Scalable TCP: the window grows by a hundredth of the segments acknowledged and shrinks by an
/// eighth.
#[derive(Clone, Debug)]
pub(in crate::linux) struct Scalable;
impl Algorithm for Scalable {
    fn ssthresh(&mut self, state: &mut State) -> u32 {
        (state.cwnd - (state.cwnd >> 3)).max(2)
    }
    fn avoid(&mut self, state: &mut State, mut acked: u32) {
        if !state.is_cwnd_limited() {
            return;
        }
        if state.in_slow_start() {
            acked = state.slow_start(acked);
            if acked == 0 {
                return;
            }
        }
        state.grow(state.cwnd.min(100), acked);
    }
}

/// One of them, dispatched without a pointer.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // there is one of them in each sender
pub(super) enum LinuxControl {
    Reno(Reno),
    Cubic(cubic::Cubic),
    Bbr(bbr::Bbr),
    Dctcp(dctcp::Dctcp),
    Vegas(vegas::Vegas),
    Westwood(westwood::Westwood),
    HighSpeed(highspeed::HighSpeed),
    Scalable(Scalable),
    External(external::External),
}

macro_rules! each {
    ($self:ident, $control:ident => $call:expr) => {
        match $self {
            LinuxControl::Reno($control) => $call,
            LinuxControl::Cubic($control) => $call,
            LinuxControl::Bbr($control) => $call,
            LinuxControl::Dctcp($control) => $call,
            LinuxControl::Vegas($control) => $call,
            LinuxControl::Westwood($control) => $call,
            LinuxControl::HighSpeed($control) => $call,
            LinuxControl::Scalable($control) => $call,
            LinuxControl::External($control) => $call,
        }
    };
}

/// Whether a control of the catalogue has its default parameters.
fn has_defaults(config: &CongestionConfig) -> bool {
    CongestionConfig::named(config.name()).as_ref() == Ok(config)
}

impl LinuxControl {
    /// The kernel's control if it has one with these parameters, or else the laboratory's.
    pub fn new(params: &TcpParams, seed: u64) -> LinuxControl {
        Self::with(params, &params.setup(params.in_bytes(params.initial_window), seed))
    }
    /// The control of a connection that has a window and a threshold.
    pub fn with(params: &TcpParams, setup: &Setup) -> LinuxControl {
        let config = &params.congestion_control;
        if let Some(cubic) = config.downcast_ref::<CubicParams>()
            && cubic.is_the_kernels()
        {
            return LinuxControl::Cubic(cubic::Cubic::new(cubic));
        }
        let kernels = match config.name() {
            "reno" => LinuxControl::Reno(Reno),
            "bbr" => LinuxControl::Bbr(bbr::Bbr::new(setup.seed)),
            "dctcp" => LinuxControl::Dctcp(dctcp::Dctcp::default()),
            "vegas" => LinuxControl::Vegas(vegas::Vegas::default()),
            "westwood" => LinuxControl::Westwood(westwood::Westwood::default()),
            "highspeed" => LinuxControl::HighSpeed(highspeed::HighSpeed::default()),
            "scalable" => LinuxControl::Scalable(Scalable),
            _ => return LinuxControl::external(params, setup),
        };
        if has_defaults(config) { kernels } else { LinuxControl::external(params, setup) }
    }
    fn external(params: &TcpParams, setup: &Setup) -> LinuxControl {
        let control = congestion::Control::new(&params.congestion_control, setup);
        LinuxControl::External(external::External::new(control, setup))
    }
    /// Gives a steered control another window and rate; false for all others.
    pub fn steer(&mut self, state: &mut State, params: &TcpParams) -> bool {
        self.as_external().is_some_and(|external| external.steer(state, params))
    }
    /// Recorded acknowledgements of a steered control; `None` for all others.
    pub fn samples(&mut self) -> Option<&mut crate::congestion::Samples> {
        self.as_external()?.samples()
    }
    /// True if it can be copied in its state.
    pub fn is_cloneable(&self) -> bool {
        !matches!(self, LinuxControl::External(external) if !external.is_cloneable())
    }
    /// True for the kernel's BBR, which sets the window itself (`cong_control`) and paces.
    #[inline]
    pub fn is_bbr(&self) -> bool {
        matches!(self, LinuxControl::Bbr(_))
    }
    /// True if its window holds in recoveries, without PRR.
    #[inline]
    pub fn recovers_by_itself(&self) -> bool {
        match self {
            LinuxControl::External(external) => external.recovers_by_itself,
            other => other.is_bbr(),
        }
    }
    /// True if it sets the pacing rate.
    pub fn has_rate(&self) -> bool {
        match self {
            LinuxControl::External(external) => external.has_rate(),
            other => other.is_bbr(),
        }
    }
    /// True if it is not the kernel's.
    #[inline]
    pub fn is_external(&self) -> bool {
        matches!(self, LinuxControl::External(_))
    }
    #[inline]
    pub fn as_external(&mut self) -> Option<&mut external::External> {
        match self {
            LinuxControl::External(external) => Some(external),
            _ => None,
        }
    }
    /// A segment is lost.
    #[inline]
    pub fn on_lost(&mut self, lost: impl FnOnce() -> LostSegment) {
        if let LinuxControl::External(external) = self {
            external.on_lost(&lost());
        }
    }
    /// The window was lowered because it was not used.
    pub fn on_idle(&mut self, state: &mut State) {
        if let LinuxControl::External(external) = self {
            external.on_idle(state);
        }
    }
    /// All it sends is ECN-capable.
    #[inline]
    pub fn needs_ecn(&self) -> bool {
        matches!(self, LinuxControl::Dctcp(_))
    }
    pub fn init(&mut self, state: &mut State) {
        if let LinuxControl::Dctcp(_) = self
            && !state.ecn
        {
            *self = LinuxControl::Reno(Reno);
        }
        each!(self, control => control.init(state));
    }
    pub fn ssthresh(&mut self, state: &mut State) -> u32 {
        each!(self, control => control.ssthresh(state))
    }
    #[inline]
    pub fn avoid(&mut self, state: &mut State, acked: u32) {
        each!(self, control => control.avoid(state, acked));
    }
    pub fn undo(&mut self, state: &mut State) -> u32 {
        each!(self, control => control.undo(state))
    }
    pub fn enter(&mut self, state: &mut State, new: CaState) {
        each!(self, control => control.enter(state, new));
        state.ca_state = new;
    }
    #[inline]
    pub fn event(&mut self, state: &mut State, event: Event) {
        each!(self, control => control.event(state, event));
    }
    #[inline]
    pub fn measured(&mut self, state: &mut State, sample: &Measured) {
        each!(self, control => control.measured(state, sample));
    }
    #[inline]
    pub fn acknowledged(&mut self, state: &mut State, slow: bool) {
        each!(self, control => control.acknowledged(state, slow));
    }
    #[inline]
    pub fn control(&mut self, state: &mut State, rate: &RateSample) {
        each!(self, control => control.control(state, rate));
    }
    pub fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        each!(self, control => control.observe(see));
    }
}

/// For [`Algorithm::observe`].
fn bits(bytes_per_second: f64) -> f64 {
    Rate::from_bps((bytes_per_second * 8.0) as u64).as_bps() as f64
}
