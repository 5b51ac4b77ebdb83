//! Congestion controls of libraries.

use std::sync::Arc;

use aqmlab_core::abi::{Plain, YES};
use aqmlab_core::{Rate, Result, Span, Time};
use aqmlab_tcp::abi::{Answers, Connected, Loaded};
use aqmlab_tcp::congestion::{
    AckSample, CongestionControl, CongestionEvent, ControlParams, ExternalControl, LostSegment,
    SentSample, Setup,
};

use crate::library::table;
use crate::{File, Handle, Type};

pub type Config = crate::Config<Loaded>;

impl Config {
    pub fn load(file: File<'_>) -> Result<Self> {
        let table: Loaded = table(file)?;
        Self::new(file, false, table.params, table)
    }
}

impl ControlParams for Config {
    fn build(&self, setup: &Setup) -> Box<dyn ExternalControl> {
        let (table, mut answers) = (self.table, Answers::default());
        let built = (table.build)(&self.values, &setup.to_c(), &mut answers);
        let pointer = built.unwrap_or_else(|| self.type_.fail("build", Time::ZERO));
        let handle = Handle { pointer, free: table.free };
        let type_ = Arc::clone(&self.type_);
        Box::new(Control { handle, table, type_, answers, now: Time::ZERO })
    }
    fn cycle(&self, window: f64, rtt: f64, acknowledged: u64) -> Option<f64> {
        let mut seconds = 0.0;
        let answer = (self.table.cycle)(&self.values, window, rtt, acknowledged, &mut seconds);
        (answer == YES).then_some(seconds)
    }
}

/// Control of a library.
struct Control {
    handle: Handle,
    table: Loaded,
    type_: Arc<Type>,
    answers: Answers,
    now: Time,
}

impl ExternalControl for Control {
    fn boxed_clone(&self) -> Option<Box<dyn ExternalControl>> {
        // SAFETY: the pointer is the control's (rule 3).
        let copy = unsafe { (self.table.copy)(self.handle.pointer) };
        let pointer = copy.unwrap_or_else(|| self.type_.fail("clone", self.now));
        let handle = Handle { pointer, free: self.table.free };
        Some(Box::new(Control { handle, type_: Arc::clone(&self.type_), ..*self }))
    }
}

/// Calls a function of the library with a value in its form in C.
macro_rules! tell {
    ($control:ident, $method:ident, $told:expr) => {{
        let (pointer, told) = ($control.handle.pointer, Plain::to_c($told));
        // SAFETY: the pointer is the control's (rule 3).
        let answer = unsafe { ($control.table.$method)(pointer, &told, &mut $control.answers) };
        $control.type_.answer(answer, stringify!($method), $control.now);
    }};
}

impl CongestionControl for Control {
    fn on_ack(&mut self, sample: &AckSample) {
        self.now = sample.now;
        tell!(self, on_ack, *sample);
    }
    fn on_congestion(&mut self, event: &CongestionEvent) {
        self.now = event.now;
        tell!(self, on_congestion, *event);
    }
    fn on_undo(&mut self) {
        tell!(self, on_undo, 0u64);
    }
    fn on_connected(&mut self, now: Time, rtt: Option<Span>) {
        self.now = now;
        tell!(self, on_connected, Connected { now, rtt });
    }
    fn on_idle(&mut self, restart_window: u64) {
        tell!(self, on_idle, restart_window);
    }
    fn set_ssthresh(&mut self, ssthresh: u64) {
        tell!(self, set_ssthresh, ssthresh);
    }
    fn on_sent(&mut self, sent: &SentSample) {
        self.now = sent.now;
        tell!(self, on_sent, *sent);
    }
    fn on_lost(&mut self, lost: &LostSegment) {
        tell!(self, on_lost, *lost);
    }
    fn on_recovery_exit(&mut self, in_flight: u64) {
        tell!(self, on_recovery_exit, in_flight);
    }
    fn window(&self) -> u64 {
        self.answers.window
    }
    fn ssthresh(&self) -> u64 {
        self.answers.ssthresh
    }
    fn pacing_rate(&self) -> Option<Rate> {
        (self.answers.pacing_rate > 0).then(|| Rate::from_bps(self.answers.pacing_rate))
    }
    fn needs_rate_samples(&self) -> bool {
        self.answers.needs_rate_samples != 0
    }
    fn recovers_by_itself(&self) -> bool {
        self.answers.recovers_by_itself != 0
    }
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        crate::observed(&self.type_, self.now, see, |index, name, value| {
            // SAFETY: the pointer is the control's (rule 3).
            unsafe { (self.table.observe)(self.handle.pointer, index, name, value) }
        });
    }
}
