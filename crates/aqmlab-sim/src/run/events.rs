//! Events outside the network: timers of endpoints and applications.

/// Kind of an event. Their order is the order of simultaneous events.
#[derive(Clone, Copy)]
pub(crate) enum Event {
    /// Next change of the scenario. Groups that it adds may start at the same time.
    Change,
    /// Route change, by its number over all groups.
    Reroute,
    /// Start of a flow.
    FlowStart,
    /// Start of an application.
    AppStart,
    /// Timer of an application.
    App,
    /// Timer of a receiver (delayed acknowledgements).
    ReceiverTimer,
    /// Timer of a sender (retransmission).
    SenderTimer,
    /// Sample of all links and flows.
    Sample,
    /// End of the warm-up.
    WarmupEnd,
    /// Notification that a stopped flow has delivered all its bytes before.
    Heard,
}

/// All kinds, in order.
const KINDS: [Event; 10] = [
    Event::Change,
    Event::Reroute,
    Event::FlowStart,
    Event::AppStart,
    Event::App,
    Event::ReceiverTimer,
    Event::SenderTimer,
    Event::Sample,
    Event::WarmupEnd,
    Event::Heard,
];

impl Event {
    /// Returns the kind of a pending event.
    #[inline]
    pub fn of(kind: u32) -> Self {
        KINDS[kind as usize]
    }
}
