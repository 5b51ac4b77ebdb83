//! What an application has to do later, where one timer is not enough; and
//! when bytes arrive, where there are several messages on one flow.

use std::collections::{BTreeMap, VecDeque};

use aqmlab_core::Time;

use crate::workload::app::Context;

/// Things to do at their times; of one time, those asked for first.
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
    /// Has `what` done at `time`. The application's timer is the agenda's.
    pub fn add(&mut self, time: Time, what: T, cx: &mut Context) {
        self.made += 1;
        self.entries.insert((time, self.made), what);
        self.arm(cx);
    }
    /// What is due; ask until there is nothing. The last answer arms the timer.
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

/// What becomes of the bytes of a flow when they arrive: messages, by the
/// number of the last byte of each.
pub(crate) struct Messages<T>(VecDeque<(u64, T)>);

impl<T> Default for Messages<T> {
    fn default() -> Self {
        Messages(VecDeque::new())
    }
}

impl<T> Messages<T> {
    /// Writes `bytes` to `flow`, all of whose messages are here.
    pub fn write(&mut self, flow: u32, bytes: u64, message: T, cx: &mut Context) {
        let end = cx.write(flow, bytes);
        self.mark(flow, end, message, cx);
    }
    /// Marks the byte up to which `flow` has to have arrived.
    pub fn mark(&mut self, flow: u32, end: u64, message: T, cx: &mut Context) {
        self.0.push_back((end, message));
        self.expect(flow, cx);
    }
    /// A message that has arrived; ask until there is none.
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
