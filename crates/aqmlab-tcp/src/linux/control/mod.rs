//! The kernel's congestion controls: windows in whole segments, told what the kernel tells them.
//!
//! Each is one file of `net/ipv4/tcp_*.c`. The defaults of [`Algorithm`] are Reno's.

pub(super) mod bbr;
mod cubic;
mod dctcp;
pub(super) mod external;
mod highspeed;
mod vegas;
mod westwood;

use aqmlab_core::{Rate, Time, dispatched};

use super::state::{CaState, Rate as RateSample, State};
use crate::congestion::cubic::CubicParams;
use crate::congestion::{self, CongestionConfig, LostSegment, Setup};
use crate::params::TcpParams;

/// Events other than acknowledgements (`enum tcp_ca_event`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The first segment is sent while nothing is in flight.
    TransmitStart,
    /// The window is reduced after an idle time.
    Restart,
    /// A reduction of the window is over.
    ReductionComplete,
    /// A timeout.
    Loss,
}

dispatched! {
    /// A congestion control of the kernel (`struct tcp_congestion_ops`).
    pub(crate) trait Algorithm {
        /// The connection is open.
        fn init(&mut self, _state: &mut State) {}
        /// The threshold at a loss.
        fn ssthresh(&mut self, state: &mut State) -> u32 {
            (state.cwnd >> 1).max(2)
        }
        /// Segments were acknowledged while the window may grow.
        fn avoid(&mut self, state: &mut State, acked: u32) {
            reno(state, acked, |state, _| state.cwnd);
        }
        /// The window after a reduction that had no reason.
        fn undo(&mut self, state: &mut State) -> u32 {
            state.cwnd.max(state.prior_cwnd)
        }
        /// The window was lowered because it was not used.
        fn on_idle(&mut self, _state: &mut State) {}
        /// The congestion machine enters a state; `state` still has the one before.
        fn enter(&mut self, _state: &mut State, _new: CaState) {}
        fn event(&mut self, _state: &mut State, _event: Event) {}
        /// An acknowledgement was measured: the round-trip time in microseconds, -1 for none.
        fn measured(&mut self, _state: &mut State, _rtt: i64) {}
        /// An acknowledgement came; whether it took the slow path.
        fn acknowledged(&mut self, _state: &mut State, _slow: bool) {}
        /// Sets the window itself, from samples of the rate.
        fn control(&mut self, _state: &mut State, _rate: &RateSample) {}
        /// True if its window holds in recoveries, without PRR.
        fn recovers_by_itself(&self) -> bool {
            false
        }
        /// True if it sets the pacing rate.
        fn has_rate(&self) -> bool {
            false
        }
        fn observe(&self, _see: &mut dyn FnMut(&'static str, f64)) {}
    }
    passed on by pass_algorithm
}

/// Slow start, and congestion avoidance by a segment for each `count` acknowledged.
pub(super) fn reno(state: &mut State, mut acked: u32, count: impl FnOnce(&State, u32) -> u32) {
    if !state.is_cwnd_limited() {
        return;
    }
    if state.in_slow_start() {
        acked = state.slow_start(acked);
        if acked == 0 {
            return;
        }
    }
    state.grow(count(state, acked), acked);
}

#[derive(Clone, Debug)]
pub(crate) struct Reno;
impl Algorithm for Reno {}

/// Scalable TCP: the window grows by a hundredth of the segments acknowledged and shrinks by an
/// eighth.
#[derive(Clone, Debug)]
pub(crate) struct Scalable;
impl Algorithm for Scalable {
    fn ssthresh(&mut self, state: &mut State) -> u32 {
        (state.cwnd - (state.cwnd >> 3)).max(2)
    }
    fn avoid(&mut self, state: &mut State, acked: u32) {
        reno(state, acked, |state, _| state.cwnd.min(100));
    }
}

/// One of them, dispatched without a pointer.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // there is one of them in each sender
pub(crate) enum LinuxControl {
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
    pub fn new(params: &TcpParams, setup: &Setup) -> LinuxControl {
        let config = &params.congestion_control;
        if let Some(cubic) = config.downcast_ref::<CubicParams>()
            && cubic.is_the_kernels()
        {
            return LinuxControl::Cubic(cubic::Cubic::new(cubic));
        }
        match config.name() {
            _ if !has_defaults(config) => {}
            "reno" => return LinuxControl::Reno(Reno),
            "bbr" => return LinuxControl::Bbr(bbr::Bbr::new(setup.seed)),
            "dctcp" => return LinuxControl::Dctcp(dctcp::Dctcp::default()),
            "vegas" => return LinuxControl::Vegas(vegas::Vegas::default()),
            "westwood" => return LinuxControl::Westwood(westwood::Westwood::default()),
            "highspeed" => return LinuxControl::HighSpeed(highspeed::HighSpeed::default()),
            "scalable" => return LinuxControl::Scalable(Scalable),
            _ => {}
        }
        let control = congestion::Control::new(config, setup);
        LinuxControl::External(external::External::new(control, setup))
    }
    /// True if it can be copied in its state.
    pub fn is_cloneable(&self) -> bool {
        !matches!(self, LinuxControl::External(external) if !external.control.is_cloneable())
    }
    /// True for the kernel's BBR, which sets the window itself (`cong_control`) and paces.
    #[inline]
    pub fn is_bbr(&self) -> bool {
        matches!(self, LinuxControl::Bbr(_))
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
    /// All it sends is ECN-capable.
    #[inline]
    pub fn needs_ecn(&self) -> bool {
        matches!(self, LinuxControl::Dctcp(_))
    }
    /// Starts it: the connection is open. DCTCP without ECN is Reno.
    pub fn start(&mut self, state: &mut State, now: Time) {
        if matches!(self, LinuxControl::Dctcp(_)) && !state.ecn {
            *self = LinuxControl::Reno(Reno);
        }
        self.init(state);
        if let Some(external) = self.as_external() {
            external.on_connected(state, now);
        }
    }
}

pass_algorithm!(LinuxControl, each);

/// For [`Algorithm::observe`].
fn bits(bytes_per_second: f64) -> f64 {
    Rate::from_bps((bytes_per_second * 8.0) as u64).as_bps() as f64
}
