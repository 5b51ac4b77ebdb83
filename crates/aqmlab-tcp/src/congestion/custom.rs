//! Congestion controls that are not in the catalogue: written in another
//! crate, or in another language.
//!
//! A control in another crate is written like one of ours: `params!`, an
//! implementation of [`ControlParams`], and a type with `new` that implements
//! [`CongestionControl`]. [`Controls`] gives it to whoever reads scenarios, by
//! its name; there is no global registry. `examples/rust-control` is a whole
//! program.
//!
//! The sender calls it through a pointer, and takes its answers with a grain of
//! salt: windows and rates that would overflow the sender's sums are cut.

use std::fmt;

use aqmlab_core::{CustomParams, Error, Lookup, Rate, Result, Span, Time, Value};

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
    fn build(&self, setup: &Setup) -> Box<dyn CongestionControl>;
}

impl Clone for Box<dyn CustomControl> {
    fn clone(&self) -> Self {
        (**self).boxed_clone()
    }
}

/// Controls of another crate. Without any, only the catalogue is known.
#[derive(Default)]
pub struct Controls(Vec<Box<dyn CustomControl>>);

impl Controls {
    /// Adds a control under its parameters' name; `new` makes it.
    ///
    /// # Errors
    /// If the name is taken.
    pub fn with<P, C>(mut self, new: fn(&P, &Setup) -> C) -> Result<Controls>
    where
        P: ControlParams + fmt::Debug + Send + Sync + 'static,
        C: CongestionControl + 'static,
    {
        let taken = CongestionConfig::named(P::NAME).is_ok() || self.names().contains(&P::NAME);
        if taken {
            return Err(Error::not_allowed(P::NAME, "a name that no other control has"));
        }
        self.0.push(Box::new(Foreign { params: P::default(), new }));
        Ok(self)
    }
}

impl Lookup<dyn CustomControl> for Controls {
    fn find(&self, name: &str) -> Result<Option<Box<dyn CustomControl>>> {
        Ok(self.0.iter().find(|each| each.name() == name).cloned())
    }
    fn names(&self) -> Vec<&str> {
        self.0.iter().map(|each| each.name()).collect()
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

impl<P: ControlParams + fmt::Debug + Send + Sync, C> CustomParams for Foreign<P, C> {
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
    C: CongestionControl + 'static,
{
    fn boxed_clone(&self) -> Box<dyn CustomControl> {
        Box::new(Foreign { params: self.params.clone(), new: self.new })
    }
    fn build(&self, setup: &Setup) -> Box<dyn CongestionControl> {
        Box::new((self.new)(&self.params, setup))
    }
}

/// A custom control at work.
pub(crate) struct State(Box<dyn CongestionControl>);

impl State {
    pub fn new(config: &dyn CustomControl, setup: &Setup) -> Self {
        State(config.build(setup))
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "window {}, ssthresh {}", self.0.window(), self.0.ssthresh())
    }
}

impl CongestionControl for State {
    fn on_ack(&mut self, sample: &AckSample) {
        self.0.on_ack(sample);
    }
    fn on_congestion(&mut self, event: &CongestionEvent) {
        self.0.on_congestion(event);
    }
    fn on_undo(&mut self) {
        self.0.on_undo();
    }
    fn on_connected(&mut self, now: Time, rtt: Option<Span>) {
        self.0.on_connected(now, rtt);
    }
    fn on_idle(&mut self, restart_window: u64) {
        self.0.on_idle(restart_window);
    }
    fn set_ssthresh(&mut self, ssthresh: u64) {
        self.0.set_ssthresh(ssthresh);
    }
    fn on_sent(&mut self, sent: &SentSample) {
        self.0.on_sent(sent);
    }
    fn on_lost(&mut self, lost: &LostSegment) {
        self.0.on_lost(lost);
    }
    fn on_recovery_exit(&mut self, in_flight: u64) {
        self.0.on_recovery_exit(in_flight);
    }
    fn window(&self) -> u64 {
        self.0.window().min(MOST)
    }
    fn ssthresh(&self) -> u64 {
        self.0.ssthresh().min(MOST)
    }
    fn pacing_rate(&self) -> Option<Rate> {
        self.0.pacing_rate()
    }
    fn needs_rate_samples(&self) -> bool {
        self.0.needs_rate_samples()
    }
    fn recovers_by_itself(&self) -> bool {
        self.0.recovers_by_itself()
    }
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        self.0.observe(see);
    }
}
