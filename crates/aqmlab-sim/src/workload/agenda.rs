//! Pending actions of an application that needs several timers, and pending messages of a flow that
//! carries several.

use std::collections::{BTreeMap, VecDeque};

use aqmlab_core::Time;

use crate::workload::app::Context;

/// Pending actions by time; simultaneous ones in the order of their requests.
#[derive(Clone)]
pub(crate) struct Agenda<T> {
    entries: BTreeMap<(Time, u64), T>,
    made: u64,
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Agenda { entries: BTreeMap::new(), made: 0 }
    }
}

impl<T> Agenda<T> {
    /// Schedules `what` at `time`. The agenda owns the application's timer.
    pub fn add(&mut self, time: Time, what: T, cx: &mut Context) {
        self.made += 1;
        self.entries.insert((time, self.made), what);
        self.arm(cx);
    }
    /// Returns the next due action; call until `None`, which arms the timer.
    pub fn due(&mut self, cx: &mut Context) -> Option<T> {
        match self.entries.first_entry() {
            Some(first) if first.key().0 <= cx.now() => Some(first.remove()),
            _ => {
                self.arm(cx);
                None
            }
        }
    }
    fn arm(&self, cx: &mut Context) {
        if let Some(((time, _), _)) = self.entries.first_key_value() {
            cx.wake_at(*time);
        }
    }
}

/// Pending messages of a flow, by the number of their last byte.
#[derive(Clone)]
pub(crate) struct Messages<T>(VecDeque<(u64, T)>);

impl<T> Default for Messages<T> {
    fn default() -> Self {
        Messages(VecDeque::new())
    }
}

impl<T> Messages<T> {
    /// Writes `bytes` to `flow`; this must contain all messages of the flow.
    pub fn write(&mut self, flow: u32, bytes: u64, message: T, cx: &mut Context) {
        let end = cx.write(flow, bytes);
        self.mark(flow, end, message, cx);
    }
    /// Sets the byte up to which `flow` must arrive for this message.
    pub fn mark(&mut self, flow: u32, end: u64, message: T, cx: &mut Context) {
        self.0.push_back((end, message));
        self.expect(flow, cx);
    }
    /// Returns the next arrived message; call until `None`.
    pub fn arrived(&mut self, flow: u32, cx: &mut Context) -> Option<T> {
        let (end, _) = self.0.front()?;
        if *end <= cx.received(flow) {
            return self.0.pop_front().map(|(_, message)| message);
        }
        self.expect(flow, cx);
        None
    }
    fn expect(&self, flow: u32, cx: &mut Context) {
        if let Some((end, _)) = self.0.front()
            && *end > cx.received(flow)
        {
            cx.expect(flow, *end);
        }
    }
}
