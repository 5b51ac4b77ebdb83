//! Congestion controls, behind one interface.
//!
//! A congestion control sees acknowledgements and congestion events as
//! structs and answers with a window and, if it paces, a rate. It does not
//! know of sequence numbers: what was lost is the sender's to find out.

mod reno;

use aqmlab_core::{Rate, Span, Time, choices};

/// An acknowledgement of new data.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// When it came.
    pub now: Time,
    /// Bytes newly acknowledged, cumulatively.
    pub acked: u64,
    /// Bytes in flight before it came.
    pub in_flight: u64,
    /// The round-trip time measured with it, if there was one to measure.
    pub rtt: Option<Span>,
    /// Whether the sender is in fast recovery: windows do not grow then.
    pub in_recovery: bool,
    /// Whether the window, and not the application, has held the sender back.
    pub window_limited: bool,
}

/// What tells of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// Fast recovery begins: a loss was found by duplicate or selective
    /// acknowledgements.
    Loss,
    /// The retransmission timer ran out; `first` for the segment at hand.
    Timeout {
        /// Whether it is the first timeout for this segment.
        first: bool,
    },
}

/// A congestion event.
#[derive(Clone, Copy, Debug)]
pub struct CongestionEvent {
    /// When it was found.
    pub now: Time,
    /// What it was.
    pub kind: Congestion,
    /// FlightSize, without what limited transmit sent (RFC 5681, section 3.2).
    pub flight_size: u64,
}

/// A congestion control.
pub trait CongestionControl {
    /// New data were acknowledged.
    fn on_ack(&mut self, sample: &AckSample);
    /// Congestion was found.
    fn on_congestion(&mut self, event: &CongestionEvent);
    /// Recovery without SACK ends with this much in flight (RFC 6582,
    /// section 3.2, step 3: full acknowledgements).
    fn on_recovery_exit(&mut self, _in_flight: u64) {}
    /// The congestion window in bytes.
    fn window(&self) -> u64;
    /// The slow start threshold in bytes.
    fn ssthresh(&self) -> u64;
    /// The rate to pace at; `None` sends at once what the window allows.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
}

/// What a congestion control is made from.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// SMSS (RFC 5681, section 2).
    pub mss: u64,
    /// The first window in bytes.
    pub initial_window: u64,
    /// The first slow start threshold in bytes.
    pub initial_ssthresh: u64,
}

macro_rules! algorithms {
    ($( $(#[doc = $doc:literal])+ $Variant:ident($State:ty) = $name:literal, )+) => {
        choices! {
            /// The congestion controls there are.
            pub enum Algorithm { $( $(#[doc = $doc])+ $Variant = $name, )+ }
        }

        /// The state of one of them: dispatched without a pointer, as it is
        /// called for each acknowledgement.
        #[derive(Clone, Debug)]
        pub(crate) enum Control { $( $Variant($State), )+ }

        impl Control {
            pub fn new(algorithm: Algorithm, setup: &Setup) -> Self {
                match algorithm { $( Algorithm::$Variant => Control::$Variant(<$State>::new(setup)), )+ }
            }
        }

        impl CongestionControl for Control {
            #[inline]
            fn on_ack(&mut self, sample: &AckSample) {
                match self { $( Control::$Variant(state) => state.on_ack(sample), )+ }
            }
            fn on_congestion(&mut self, event: &CongestionEvent) {
                match self { $( Control::$Variant(state) => state.on_congestion(event), )+ }
            }
            fn on_recovery_exit(&mut self, in_flight: u64) {
                match self { $( Control::$Variant(state) => state.on_recovery_exit(in_flight), )+ }
            }
            #[inline]
            fn window(&self) -> u64 {
                match self { $( Control::$Variant(state) => state.window(), )+ }
            }
            fn ssthresh(&self) -> u64 {
                match self { $( Control::$Variant(state) => state.ssthresh(), )+ }
            }
            fn pacing_rate(&self) -> Option<Rate> {
                match self { $( Control::$Variant(state) => state.pacing_rate(), )+ }
            }
        }
    };
}

// One line a congestion control.
algorithms! {
    /// Slow start, congestion avoidance, halving (RFC 5681).
    Reno(reno::Reno) = "reno",
}
