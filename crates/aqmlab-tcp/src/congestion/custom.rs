//! Congestion controls that are not in the catalogue: written in another crate or another language.
//!
//! A control in another crate is written like a built-in one: `params!`, implementations of
//! [`Component`](aqmlab_core::Component) and [`ControlParams`](super::ControlParams), and a type
//! that implements [`CongestionControl`]. [`Controls`](super::Controls) passes it by its name to the
//! reader of scenarios; there is no global registry. `examples/rust-control/tests` uses it. The same control
//! in a shared library ([`abi`](crate::abi)) runs in all commands of aqmlab.
//!
//! The sender calls it through a pointer, and limits windows and rates that would overflow its sums.

use std::fmt;

use aqmlab_core::{Rate, Span, Time};

use super::control::{
    AckSample, CongestionControl, CongestionEvent, ExternalControl, LostSegment, SentSample,
};

/// Maximum window: sums with it do not overflow.
const MOST: u64 = u64::MAX / 4;

/// State of a custom control.
pub(crate) struct CustomState(Box<dyn ExternalControl>);

impl CustomState {
    pub fn new(control: Box<dyn ExternalControl>) -> Self {
        CustomState(control)
    }
    pub fn is_cloneable(&self) -> bool {
        self.0.boxed_clone().is_some()
    }
}

impl Clone for CustomState {
    /// # Panics
    /// Panics if the control cannot be copied: see [`State::is_cloneable`].
    fn clone(&self) -> Self {
        CustomState(self.0.boxed_clone().expect("the caller asks `Sender::is_cloneable`"))
    }
}

impl fmt::Debug for CustomState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "window {}, ssthresh {}", self.0.window(), self.0.ssthresh())
    }
}

/// An answer that the sender's sums can hold.
trait Bounded {
    fn bounded(self) -> Self;
}
impl Bounded for u64 {
    fn bounded(self) -> u64 {
        self.min(MOST)
    }
}
/// Answers that are no windows stay as they are.
macro_rules! unbounded {
    ($($Answer:ty),+) => { $( impl Bounded for $Answer {
        fn bounded(self) -> Self { self }
    } )+ };
}
unbounded!((), bool, Option<Rate>);

/// Calls a method of what the pointer leads to.
macro_rules! behind {
    ($self:ident, $state:ident => $call:expr) => {
        match $self {
            CustomState($state) => Bounded::bounded($call),
        }
    };
}

pass_control!(CustomState, behind);
