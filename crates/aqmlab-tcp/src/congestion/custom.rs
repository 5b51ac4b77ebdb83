//! Congestion controls that are not in the catalogue: written in another
//! crate, or in another language.
//!
//! A control in another crate is written like one of ours: `params!`, an implementation of
//! [`ControlParams`], and a type with `new` that implements [`CongestionControl`]. [`Controls`]
//! passes it by its name to the reader of scenarios; there is no global registry.
//! `examples/rust-control` is a whole program.
//!
//! The sender calls it through a pointer, and takes its answers with a grain of
//! salt: windows and rates that would overflow the sender's sums are cut.

use std::fmt;

use aqmlab_core::{Added, CustomParams, Lookup, Rate, Result, Span, Time, Value};

use super::{
    AckSample, CongestionConfig, CongestionControl, CongestionEvent, ControlParams, LostSegment,
    SentSample, Setup,
};

/// The largest window: sums with it do not overflow.
const MOST: u64 = u64::MAX / 4;

/// The configuration of a custom control: its parameters, and how it is made.
pub trait CustomControl: CustomParams {
    /// A copy.
    fn boxed_clone(&self) -> Box<dyn CustomControl>;
    /// Makes the state machine; once for each connection, and again if its SYN
    /// was lost.
    fn build(&self, setup: &Setup) -> Box<dyn ExternalControl>;
}

/// A custom control that the sender calls through a pointer. Every control that is `Clone` is
/// one.
pub trait ExternalControl: CongestionControl {
    /// A copy in the same state, for snapshots; `None` if it cannot be copied.
    fn boxed_clone(&self) -> Option<Box<dyn ExternalControl>>;
}

impl<C: CongestionControl + Clone + 'static> ExternalControl for C {
    fn boxed_clone(&self) -> Option<Box<dyn ExternalControl>> {
        Some(Box::new(self.clone()))
    }
}

impl Clone for Box<dyn CustomControl> {
    fn clone(&self) -> Self {
        (**self).boxed_clone()
    }
}

/// Controls of another crate. Without any, only the catalogue is known.
#[derive(Default)]
pub struct Controls(Added<dyn CustomControl>);

impl Controls {
    /// Adds a control under its parameters' name; `new` makes it.
    ///
    /// # Errors
    /// Returns an error if the name is taken.
    pub fn with<P, C>(self, new: fn(&P, &Setup) -> C) -> Result<Controls>
    where
        P: ControlParams + fmt::Debug + Send + Sync + 'static,
        C: CongestionControl + Clone + 'static,
    {
        let config = Box::new(Foreign { params: P::default(), new });
        self.0.with::<CongestionConfig>(config).map(Controls)
    }
}

impl Lookup<dyn CustomControl> for Controls {
    fn find(&self, name: &str) -> Result<Option<Box<dyn CustomControl>>> {
        self.0.find(name)
    }
    fn names(&self) -> Vec<&str> {
        self.0.names()
    }
}

/// A control of another crate.
struct Foreign<P, C> {
    params: P,
    new: fn(&P, &Setup) -> C,
}

impl<P: fmt::Debug, C> fmt::Debug for Foreign<P, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.params.fmt(f)
    }
}

impl<P: ControlParams + fmt::Debug + Send + Sync + 'static, C: 'static> CustomParams
    for Foreign<P, C>
{
    fn name(&self) -> &str {
        P::NAME
    }
    fn set(&mut self, key: &str, value: &Value) -> Result<()> {
        self.params.set(key, value)
    }
    fn check(&self) -> Result<()> {
        self.params.check()
    }
    fn entries(&self) -> Vec<(&str, Value)> {
        self.params.entries()
    }
}

impl<P, C> CustomControl for Foreign<P, C>
where
    P: ControlParams + fmt::Debug + Send + Sync + 'static,
    C: CongestionControl + Clone + 'static,
{
    fn boxed_clone(&self) -> Box<dyn CustomControl> {
        Box::new(Foreign { params: self.params.clone(), new: self.new })
    }
    fn build(&self, setup: &Setup) -> Box<dyn ExternalControl> {
        Box::new((self.new)(&self.params, setup))
    }
}

/// A custom control at work.
pub(crate) struct State(Box<dyn ExternalControl>);

impl State {
    pub fn new(config: &dyn CustomControl, setup: &Setup) -> Self {
        State(config.build(setup))
    }
    pub fn is_cloneable(&self) -> bool {
        self.0.boxed_clone().is_some()
    }
}

impl Clone for State {
    /// # Panics
    /// Panics if the control cannot be copied: see [`State::is_cloneable`].
    fn clone(&self) -> Self {
        State(self.0.boxed_clone().expect("the caller asks `Sender::is_cloneable`"))
    }
}

impl fmt::Debug for State {
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
            State($state) => Bounded::bounded($call),
        }
    };
}

pass_control!(State, behind);
