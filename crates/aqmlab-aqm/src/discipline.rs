//! Interface of queue disciplines, and the context in which they drop packets and set CE.

use alloc::{boxed::Box, string::String, vec::Vec};

use core::any::Any;

use aqmlab_core::{
    AnyComponent, Bytes, Config, Error, Limit, Packet, Rate, Registry, Result, Span, Stream,
    TcpHeader, Time, cloneable,
};

/// Queue discipline: a state machine that accounts for every packet. Time is an argument, and
/// randomness a stream of the context.
///
/// The caller guarantees:
/// - times never go backwards, and count from about the time at which the queue was built: timers
///   start from [`Time::ZERO`];
/// - `on_wakeup` is called at each time that `next_wakeup` returns;
/// - `dequeue` is called once at the end of every transmission, *also when
///   the queue is empty* (RED takes the start of an idle period from that,
///   CoDel leaves its dropping state), and once after an `enqueue` on an idle
///   link;
/// - after `on_wakeup`, if the link is idle while packets are queued,
///   `dequeue` is called: a discipline that shapes may give none and say in
///   `next_wakeup` when to ask again.
///
/// The caller decides the order of simultaneous events.
pub trait QueueDiscipline: CloneDiscipline + Any + Send {
    /// Enqueues a packet, or passes it (or another) to [`Context::drop`].
    /// The arrival time of the packet is set.
    fn enqueue(&mut self, packet: Packet, cx: &mut Context<'_>);

    /// Returns the next packet to send.
    fn dequeue(&mut self, cx: &mut Context<'_>) -> Option<Packet>;

    /// Returns true if a packet of this size that arrives at an idle link is sent at once and
    /// changes no state: [`enqueue`](Self::enqueue) and [`dequeue`](Self::dequeue) are then not
    /// called.
    fn passes(&self, _size: u32) -> bool {
        false
    }

    /// Returns the time of the next call of [`on_wakeup`](Self::on_wakeup): the timer
    /// of PIE, DualPI2, Adaptive RED.
    fn next_wakeup(&self) -> Option<Time> {
        None
    }

    /// Returns true if only [`on_wakeup`](Self::on_wakeup) changes
    /// [`next_wakeup`](Self::next_wakeup), as with a clock or without a timer. A shaper returns
    /// false: its timer is read after every packet.
    fn has_fixed_timer(&self) -> bool {
        true
    }

    /// Handles the timer.
    fn on_wakeup(&mut self, _cx: &mut Context<'_>) {}

    /// Returns the present backlog. Must be cheap: it is read for every packet.
    fn backlog(&self) -> Backlog;

    /// Passes names and values of the state worth plotting to `see`, always in the same order;
    /// recording level `series` records them.
    fn observe(&self, _see: &mut dyn FnMut(&'static str, f64)) {}

    /// Passes every queued packet to `see`, in any order, and returns true; or returns false if the
    /// discipline does not list its packets. Their times are then found by dequeuing them.
    fn list(&self, _see: &mut dyn FnMut(&Packet)) -> bool {
        false
    }

    /// Checks that the discipline can be cloned. All that are written in Rust can.
    ///
    /// # Errors
    /// An error that names the discipline, if it cannot.
    fn check_clone(&self) -> Result<()> {
        Ok(())
    }

    /// Ends the run because the discipline has broken a rule. One of another language or library
    /// reports that as its failure.
    fn refuse(&self, problem: &str) -> ! {
        panic!("{problem}")
    }

    /// Returns notes for the readers of the results, at the end of a run: that the discipline
    /// never acted, for example.
    fn notes(&self) -> Vec<Note> {
        Vec::new()
    }
}

cloneable!(pub trait CloneDiscipline of QueueDiscipline);

impl dyn QueueDiscipline {
    /// The state machine behind the interface, for [`Discipline::change`].
    ///
    /// # Panics
    /// Panics if the queue runs another state machine: a bug of the caller.
    pub fn machine<M: QueueDiscipline>(&mut self) -> &mut M {
        let machine: &mut dyn Any = self;
        machine.downcast_mut().expect("a queue runs the state machine that its parameters built")
    }
}

/// Backlog of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Backlog {
    /// Packets.
    pub packets: u64,
    /// Bytes on the wire.
    pub bytes: u64,
}

impl Backlog {
    /// Returns the backlog and a limit, which must be resolved, in the unit of the limit.
    #[inline]
    pub(crate) fn against(self, limit: Limit) -> (u64, u64) {
        match limit {
            Limit::Packets(limit) => (self.packets, limit),
            Limit::Bytes(limit) => (self.bytes, limit.get()),
            Limit::Bdp(_) | Limit::Unlimited => (0, u64::MAX),
        }
    }
    /// Returns true if the backlog is a limit, which must be resolved, or more.
    #[inline]
    pub(crate) fn reaches(self, limit: Limit) -> bool {
        match limit {
            Limit::Packets(packets) => self.packets >= packets,
            Limit::Bytes(bytes) => self.bytes >= bytes.get(),
            Limit::Bdp(_) | Limit::Unlimited => false,
        }
    }
    /// Returns true if the backlog exceeds a threshold, which must be resolved.
    #[inline]
    pub fn exceeds(self, threshold: Limit) -> bool {
        match threshold {
            Limit::Packets(packets) => self.packets > packets,
            Limit::Bytes(bytes) => self.bytes > bytes.get(),
            Limit::Bdp(_) | Limit::Unlimited => false,
        }
    }
}

/// Declares an enum of which results contain the names.
#[doc(hidden)]
#[macro_export]
macro_rules! named {
    (
        $(#[$enum_attr:meta])*
        pub enum $Name:ident {
            $( $(#[$attr:meta])* $Variant:ident = $text:literal, )+
        }
    ) => {
        $(#[$enum_attr])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum $Name {
            $( $(#[$attr])* $Variant, )+
        }

        impl $Name {
            /// All values, in the order of their numbers.
            pub const ALL: [$Name; [$($text),+].len()] = [$($Name::$Variant),+];

            /// Returns the name in results.
            pub fn name(self) -> &'static str {
                match self {
                    $( $Name::$Variant => $text, )+
                }
            }
        }
    };
}

named! {
    /// Reason of a drop or mark.
    #[non_exhaustive]
    pub enum Reason {
        /// The buffer was full.
        Overlimit = "overlimit",
        /// The memory limit was reached (RFC 8290, section 4.1.3).
        Overmemory = "overmemory",
        /// The flow's own queue was full.
        FlowLimit = "flow_limit",
        /// RED's random decision between its thresholds.
        RedEarly = "red_early",
        /// RED's average was above its upper threshold.
        RedForced = "red_forced",
        /// CoDel's control law.
        Codel = "codel",
        /// PIE's random decision.
        Pie = "pie",
        /// COBALT's control law.
        Cobalt = "cobalt",
        /// BLUE's random decision.
        Blue = "blue",
        /// The random decision of PI squared, also as coupled to L4S packets.
        Pi2 = "pi2",
        /// A step: the queue was above a threshold.
        Step = "step",
        /// SFB's random decision.
        SfbEarly = "sfb_early",
        /// All bins of the flow were full in SFB.
        SfbBucket = "sfb_bucket",
        /// SFB's penalty box: the flow does not react.
        SfbPenalty = "sfb_penalty",
        /// CHOKe's comparison: two packets of the same flow.
        Choke = "choke",
        /// SRED's random decision.
        Sred = "sred",
        /// The random decision of the PI controller.
        Pi = "pi",
        /// A later acknowledgement in the queue makes this one superfluous.
        AckFilter = "ack_filter",
        /// The decision of a custom discipline.
        User = "user",
    }
}

impl Reason {
    /// Number of reasons.
    pub const COUNT: usize = Self::ALL.len();

    /// Returns true if the discipline signals congestion to the senders, rather than being out of
    /// buffer.
    pub fn is_signal(self) -> bool {
        !matches!(
            self,
            Reason::Overlimit | Reason::Overmemory | Reason::FlowLimit | Reason::AckFilter
        )
    }
}

/// Note for the readers of a run's results.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// Stable identifier: `pie-no-rate-sample`.
    pub id: &'static str,
    /// The sentence.
    pub text: String,
}

/// Context of a call of a discipline.
pub struct Context<'a> {
    /// Present time.
    pub now: Time,
    /// Random stream of the discipline.
    pub random: &'a mut Stream,
    /// Headers of packets.
    pub headers: &'a dyn Headers,
    /// Bytes of the packet that a TBF has taken and holds, which Linux counts as still queued
    /// (`qdisc_peek_dequeued`).
    pub held: u64,
    /// Drops and marks of the call.
    pub(crate) sink: &'a mut Sink,
}

impl<'a> Context<'a> {
    /// Returns a context for programs that use a discipline without a [`Queue`](crate::Queue), for
    /// a buffer of their own, as `examples/own_buffer.rs` does.
    #[inline]
    pub fn new(now: Time, random: &'a mut Stream, sink: &'a mut Sink) -> Self {
        Context { now, random, headers: &(), held: 0, sink }
    }
}

/// Reads the headers of packets, which packets do not carry themselves.
pub trait Headers {
    /// Returns the TCP header of a packet; `None` if it has none.
    fn tcp(&self, packet: &Packet) -> Option<TcpHeader>;
}

/// Packets whose headers cannot be read.
impl Headers for () {
    fn tcp(&self, _packet: &Packet) -> Option<TcpHeader> {
        None
    }
}

/// Dropped packets and counts of marks. A [`Queue`](crate::Queue) has its own.
#[derive(Clone, Debug, Default)]
pub struct Sink {
    pub(crate) dropped: Vec<(Packet, Reason)>,
    pub(crate) marked: [u64; Reason::COUNT],
    /// Keys of marked packets, if they are recorded.
    pub(crate) marks: Option<Vec<u64>>,
}

impl Sink {
    /// Returns the packets dropped since the last call, in order. The owner of the buffer frees
    /// their payloads.
    pub fn take_dropped(&mut self) -> impl Iterator<Item = (Packet, Reason)> + '_ {
        self.dropped.drain(..)
    }
    /// Returns the number of packets marked for this reason.
    pub fn marked(&self, reason: Reason) -> u64 {
        self.marked[reason as usize]
    }
}

impl Context<'_> {
    /// Drops a packet (arriving or queued).
    #[inline]
    pub fn drop(&mut self, packet: Packet, reason: Reason) {
        self.sink.dropped.push((packet, reason));
    }

    /// Sets CE on a packet that stays in the queue or is about to leave it. A packet that is not
    /// ECN-capable stays unmarked (RFC 3168, section 5); debug assertions report it.
    #[inline]
    pub fn mark(&mut self, packet: &mut Packet, reason: Reason) {
        let is_capable = packet.ecn().is_capable();
        debug_assert!(is_capable, "a mark on a packet that is not ECN-capable");
        if !is_capable {
            return;
        }
        packet.mark();
        self.sink.marked[reason as usize] += 1;
        if let Some(marks) = &mut self.sink.marks {
            marks.push(packet.key);
        }
    }

    /// Signals congestion: marks the packet if it is ECN-capable and `may_mark`, and drops it
    /// otherwise. Returns the packet unless it is dropped.
    #[inline(always)]
    pub fn signal(&mut self, mut packet: Packet, may_mark: bool, reason: Reason) -> Option<Packet> {
        if !(may_mark && packet.ecn().is_capable()) {
            self.drop(packet, reason);
            return None;
        }
        self.mark(&mut packet, reason);
        Some(packet)
    }
}

/// Link behind a queue, from which disciplines take defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
#[repr(C)]
pub struct LinkEnv {
    /// The rate of the link behind the queue (of its start, if it changes), or that of a slower
    /// shaper.
    pub rate: Rate,
    /// The longest round-trip time, without queues, of the flows over it.
    pub base_rtt: Span,
    /// The largest packet on the link layer: the kernel's `psched_mtu`,
    /// 1500 bytes and an Ethernet header.
    pub mtu: Bytes,
    /// Bytes of the device's header that the kernel counts with each packet and that the sizes of
    /// packets leave out: 14 on Ethernet; 0 if sizes include it.
    pub header: u32,
}

impl LinkEnv {
    /// A link with packets of up to 1514 bytes, whose sizes include the device's header.
    pub const fn new(rate: Rate, base_rtt: Span) -> Self {
        LinkEnv { rate, base_rtt, mtu: Bytes::new(1514), header: 0 }
    }
    /// The link with another largest packet and header.
    pub const fn with_sizes(self, mtu: Bytes, header: u32) -> Self {
        LinkEnv { mtu, header, ..self }
    }
}

cloneable!(pub trait CloneParams of Discipline);

/// Parameters of a discipline, which build its queues. A discipline of the catalogue, and one of
/// another crate, implements this and [`Component`](aqmlab_core::Component).
pub trait Discipline: AnyComponent + CloneParams {
    /// Returns true if the discipline can signal congestion, false if it only drops when full.
    fn gives_signals(&self) -> bool {
        true
    }

    /// Returns the rate that the discipline itself shapes to, if any.
    fn shapes_to(&self) -> Option<Rate> {
        None
    }

    /// Returns the name and the duration of the slowest adaptation of the discipline; a run must
    /// last longer. `None` if it adapts within round trips.
    fn slowest(&self, _env: &LinkEnv) -> Option<(&'static str, Span)> {
        None
    }

    /// Returns the parameters that a running queue cannot take, because its state is made for their
    /// values: the number of buckets, the variant. Only a new queue has another value.
    fn fixed(&self) -> &'static [&'static str] {
        &[]
    }

    /// Checks that a running queue can take another value of a parameter.
    ///
    /// # Errors
    /// Returns an error if it cannot.
    fn check_change(&self, key: &str) -> Result<()> {
        match self.fixed().contains(&key) {
            true => Err(Error::new("a running queue keeps its value of this")
                .hint("`replace` begins a new queue with it")),
            false => Ok(()),
        }
    }

    /// Returns a new queue with these parameters.
    fn build(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline>;

    /// Gives these parameters to a queue that [`build`](Self::build) made from others, of which
    /// those of [`fixed`](Self::fixed) are equal. The parameters are written; packets, and the
    /// state of the control, stay. What a smaller limit has no room for is dropped. (Linux: the
    /// `change` of a qdisc.)
    fn change(&self, queue: &mut dyn QueueDiscipline, env: &LinkEnv, cx: &mut Context<'_>);
}

/// State machine of a discipline of this crate with the parameters `P`.
pub(crate) trait Machine<P>: QueueDiscipline {
    /// Returns a new queue; see [`Discipline::build`].
    fn new(params: &P, env: &LinkEnv) -> Self;
    /// Takes other parameters; see [`Discipline::change`].
    fn change(&mut self, params: &P, env: &LinkEnv, cx: &mut Context<'_>);
}

/// Parameters of a discipline of this crate that has one state machine; see [`Discipline`].
pub(crate) trait OneMachine: AnyComponent + Clone {
    /// The state machine.
    type Machine: Machine<Self>;
    /// True if it can signal congestion.
    const GIVES_SIGNALS: bool = true;
    /// Parameters that a running queue cannot take.
    const FIXED: &'static [&'static str] = &[];
    /// Returns the slowest adaptation.
    fn slowest(&self, _env: &LinkEnv) -> Option<(&'static str, Span)> {
        None
    }
}

impl<P: OneMachine> Discipline for P {
    fn gives_signals(&self) -> bool {
        P::GIVES_SIGNALS
    }
    fn slowest(&self, env: &LinkEnv) -> Option<(&'static str, Span)> {
        OneMachine::slowest(self, env)
    }
    fn fixed(&self) -> &'static [&'static str] {
        P::FIXED
    }
    fn build(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline> {
        Box::new(P::Machine::new(self, env))
    }
    fn change(&self, queue: &mut dyn QueueDiscipline, env: &LinkEnv, cx: &mut Context<'_>) {
        queue.machine::<P::Machine>().change(self, env, cx);
    }
}

/// A discipline with its parameters, as a scenario names it.
pub type QueueConfig = Config<dyn Discipline>;

/// Disciplines of other crates. Without any, only the built-in ones are known.
pub type Disciplines = Registry<dyn Discipline>;

impl dyn Discipline {
    /// Returns how a queue with these parameters gets to those of `to`.
    ///
    /// # Errors
    /// Returns an error if `to` is the same discipline with another value of a parameter that a
    /// running queue cannot take: the error names the key.
    pub fn transition(&self, to: &QueueConfig) -> Result<Transition> {
        if self.name() != to.name() {
            return Ok(Transition::Replace);
        }
        let mut transition = Transition::None;
        for ((key, before), (_, after)) in self.entries().into_iter().zip(to.entries()) {
            if before != after {
                self.check_change(key).map_err(|error| error.at(key))?;
                transition = Transition::Change;
            }
        }
        Ok(transition)
    }
}

/// How a queue gets to other parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transition {
    /// They are equal: nothing happens.
    None,
    /// The parameters are written; packets and state stay. (Linux: `tc qdisc change`.)
    Change,
    /// A new queue takes over the packets. (Linux: `tc qdisc replace` with another kind.)
    Replace,
}
