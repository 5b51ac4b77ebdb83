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

/// Pending messages of a flow. They arrive in order, or each on its own if the transport gives every
/// write a stream.
#[derive(Clone)]
pub(crate) struct Messages<T> {
    pending: VecDeque<Message<T>>,
    /// Number of writes.
    written: u64,
}

#[derive(Clone)]
struct Message<T> {
    /// Number of the flow's byte with which it has arrived.
    end: u64,
    /// Write that contains it, and the number of the byte there.
    part: Option<(u64, u64)>,
    message: T,
}

impl<T> Message<T> {
    fn has_arrived(&self, flow: u32, cx: &Context) -> bool {
        let of_write = self.part.and_then(|(index, end)| Some((cx.arrived_of(flow, index)?, end)));
        let (arrived, end) = of_write.unwrap_or_else(|| (cx.received(flow), self.end));
        end <= arrived
    }
}

impl<T> Default for Messages<T> {
    fn default() -> Self {
        Messages { pending: VecDeque::new(), written: 0 }
    }
}

impl<T> Messages<T> {
    /// Writes `bytes` to `flow`, with messages that have arrived with a number of these bytes. All
    /// data of the flow must be written here.
    pub fn write<const N: usize>(
        &mut self,
        flow: u32,
        bytes: u64,
        messages: [(u64, T); N],
        cx: &mut Context,
    ) {
        let start = cx.write(flow, bytes) - bytes;
        for (at, message) in messages {
            let part = Some((self.written, at));
            self.pending.push_back(Message { end: start + at, part, message });
        }
        self.written += 1;
        self.expect(flow, cx);
    }
    /// Sets the byte up to which `flow` must arrive for this message.
    pub fn mark(&mut self, flow: u32, end: u64, message: T, cx: &mut Context) {
        self.pending.push_back(Message { end, part: None, message });
        self.expect(flow, cx);
    }
    /// Returns the next arrived message; call until `None`.
    pub fn arrived(&mut self, flow: u32, cx: &mut Context) -> Option<T> {
        let searched = match cx.arrived_of(flow, 0) {
            Some(_) => self.pending.len(),
            None => self.pending.len().min(1),
        };
        let mut first = self.pending.iter().take(searched);
        match first.position(|each| each.has_arrived(flow, cx)) {
            Some(place) => self.pending.remove(place).map(|each| each.message),
            None => {
                self.expect(flow, cx);
                None
            }
        }
    }
    /// Requests a notification with the next message in order, or with any byte of streams.
    fn expect(&self, flow: u32, cx: &mut Context) {
        let Some(first) = self.pending.front() else { return };
        let received = cx.received(flow);
        match cx.arrived_of(flow, 0) {
            Some(_) => cx.expect(flow, received + 1),
            None if first.end > received => cx.expect(flow, first.end),
            None => {}
        }
    }
}
