//! The interface that every queue discipline implements, and what it is
//! given to work with.

use alloc::{boxed::Box, string::String, vec::Vec};

use core::any::Any;

use aqmlab_core::{Bytes, Limit, Packet, Params, Rate, Result, Span, Stream, TcpHeader, Time};

/// A queue discipline: packets in, packets out, and every packet accounted
/// for. Time is an argument, randomness a stream; nothing else gets in.
///
/// The caller promises:
/// - times never go backwards;
/// - `dequeue` is called once at the end of every transmission, *also when
///   the queue is empty* (RED takes the start of an idle period from that,
///   CoDel leaves its dropping state), and once after an `enqueue` on an idle
///   link;
/// - after `on_wakeup`, if the link is idle while packets are queued,
///   `dequeue` is called: a discipline that shapes may give none and say in
///   `next_wakeup` when to ask again.
///
/// In which order simultaneous events come is the caller's to decide.
pub trait QueueDiscipline: CloneDiscipline + Any + Send {
    /// Takes a packet in, or hands it (or another) to [`Context::drop`].
    /// The packet's arrival time is set already.
    fn enqueue(&mut self, packet: Packet, cx: &mut Context<'_>);

    /// Gives the next packet to be sent.
    fn dequeue(&mut self, cx: &mut Context<'_>) -> Option<Packet>;

    /// A packet comes to an idle link: [`enqueue`](Self::enqueue), and [`dequeue`](Self::dequeue)
    /// after it. To be given by disciplines that know a shorter way to the same.
    fn pass(&mut self, packet: Packet, cx: &mut Context<'_>) -> Option<Packet> {
        self.enqueue(packet, cx);
        self.dequeue(cx)
    }

    /// When [`on_wakeup`](Self::on_wakeup) wants to be called next: the timer
    /// of PIE, DualPI2, Adaptive RED.
    fn next_wakeup(&self) -> Option<Time> {
        None
    }

    /// Whether [`on_wakeup`](Self::on_wakeup) alone changes [`next_wakeup`](Self::next_wakeup):
    /// there is a clock, or no timer at all. A shaper says no: it is asked after every packet.
    fn is_clocked(&self) -> bool {
        true
    }

    /// The timer ran out.
    fn on_wakeup(&mut self, _cx: &mut Context<'_>) {}

    /// What is in the queue now. Cheap: it is asked for at every packet.
    fn backlog(&self) -> Backlog;

    /// Names the state that the discipline wants to show, with its present
    /// values, always in the same order; `series` records it.
    fn observe(&self, _see: &mut dyn FnMut(&'static str, f64)) {}

    /// Passes every queued packet to `see`, in any order, and returns true; or returns false if the
    /// discipline does not list its packets. Their times are then found by dequeuing them.
    fn list(&self, _see: &mut dyn FnMut(&Packet)) -> bool {
        false
    }

    /// Checks that the discipline can be cloned. All that are written in Rust can.
    ///
    /// # Errors
    /// If it cannot; the error names it.
    fn check_clone(&self) -> Result<()> {
        Ok(())
    }

    /// At the end of a run: what a reader of the results has to know, such
    /// as that the discipline never acted.
    fn notes(&self) -> Vec<Note> {
        Vec::new()
    }
}

/// Clones a discipline behind the trait. Implemented for each that is `Clone`.
pub trait CloneDiscipline {
    /// Returns a copy with all packets and the whole state.
    fn clone_box(&self) -> Box<dyn QueueDiscipline>;
}

impl<T: QueueDiscipline + Clone> CloneDiscipline for T {
    fn clone_box(&self) -> Box<dyn QueueDiscipline> {
        Box::new(self.clone())
    }
}

/// # Panics
/// If the discipline cannot be cloned: see [`QueueDiscipline::check_clone`].
impl Clone for Box<dyn QueueDiscipline> {
    fn clone(&self) -> Self {
        (**self).clone_box()
    }
}

impl dyn QueueDiscipline {
    /// The state machine behind the interface, for [`Discipline::change`].
    ///
    /// # Panics
    /// If the queue runs another one: a bug of the caller.
    pub fn machine<M: QueueDiscipline>(&mut self) -> &mut M {
        let machine: &mut dyn Any = self;
        machine.downcast_mut().expect("a queue runs the state machine that its parameters built")
    }
}

/// What is in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Backlog {
    /// Packets.
    pub packets: u64,
    /// Their sizes on the wire.
    pub bytes: u64,
}

impl Backlog {
    /// Whether it is more than a threshold, which has to be resolved.
    #[inline]
    pub fn exceeds(self, threshold: Limit) -> bool {
        match threshold {
            Limit::Packets(packets) => self.packets > packets,
            Limit::Bytes(bytes) => self.bytes > bytes.get(),
            Limit::Bdp(_) | Limit::Unlimited => false,
        }
    }
}

/// Why a packet was dropped, or marked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[non_exhaustive]
pub enum Reason {
    /// The buffer was full.
    Overlimit,
    /// The memory limit was reached (RFC 8290, section 4.1.3).
    Overmemory,
    /// The flow's own queue was full.
    FlowLimit,
    /// RED's random decision between its thresholds.
    RedEarly,
    /// RED's average was above its upper threshold.
    RedForced,
    /// CoDel's control law.
    Codel,
    /// PIE's random decision.
    Pie,
    /// COBALT's control law.
    Cobalt,
    /// BLUE's random decision.
    Blue,
    /// The random decision of PI squared, also as coupled to L4S packets.
    Pi2,
    /// A step: the queue was above a threshold.
    Step,
    /// SFB's random decision.
    SfbEarly,
    /// All bins of the flow were full in SFB.
    SfbBucket,
    /// SFB's penalty box: the flow does not react.
    SfbPenalty,
    /// CHOKe's comparison: two packets of the same flow.
    Choke,
    /// SRED's random decision.
    Sred,
    /// The random decision of the PI controller.
    Pi,
    /// A later acknowledgement in the queue says all that this one did.
    AckFilter,
    /// The decision of a discipline that is not one of this crate's.
    User,
}

impl Reason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Reason; 19] = [
        Reason::Overlimit,
        Reason::Overmemory,
        Reason::FlowLimit,
        Reason::RedEarly,
        Reason::RedForced,
        Reason::Codel,
        Reason::Pie,
        Reason::Cobalt,
        Reason::Blue,
        Reason::Pi2,
        Reason::Step,
        Reason::SfbEarly,
        Reason::SfbBucket,
        Reason::SfbPenalty,
        Reason::Choke,
        Reason::Sred,
        Reason::Pi,
        Reason::AckFilter,
        Reason::User,
    ];
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Overlimit => "overlimit",
            Reason::Overmemory => "overmemory",
            Reason::FlowLimit => "flow_limit",
            Reason::RedEarly => "red_early",
            Reason::RedForced => "red_forced",
            Reason::Codel => "codel",
            Reason::Pie => "pie",
            Reason::Cobalt => "cobalt",
            Reason::Blue => "blue",
            Reason::Pi2 => "pi2",
            Reason::Step => "step",
            Reason::SfbEarly => "sfb_early",
            Reason::SfbBucket => "sfb_bucket",
            Reason::SfbPenalty => "sfb_penalty",
            Reason::Choke => "choke",
            Reason::Sred => "sred",
            Reason::Pi => "pi",
            Reason::AckFilter => "ack_filter",
            Reason::User => "user",
        }
    }
    /// Whether it is the discipline's signal to the senders, and not the end
    /// of a buffer.
    pub fn is_signal(self) -> bool {
        !matches!(
            self,
            Reason::Overlimit | Reason::Overmemory | Reason::FlowLimit | Reason::AckFilter
        )
    }
}

/// A sentence about a run that a reader of its results has to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// A short name that stays the same: `pie-no-rate-sample`.
    pub id: &'static str,
    /// The sentence.
    pub text: String,
}

/// What a discipline is given with each call.
pub struct Context<'a> {
    /// The time.
    pub now: Time,
    /// The discipline's own random stream.
    pub random: &'a mut Stream,
    /// Headers of packets.
    pub headers: &'a dyn Headers,
    /// Where drops and marks go.
    pub(crate) sink: &'a mut Sink,
}

impl<'a> Context<'a> {
    /// For whoever drives a discipline without a [`Queue`](crate::Queue), over
    /// a buffer of their own: `examples/own_buffer.rs` does.
    #[inline]
    pub fn new(now: Time, random: &'a mut Stream, sink: &'a mut Sink) -> Self {
        Context { now, random, headers: &(), sink }
    }

    /// The same context over packets whose headers can be read.
    #[inline]
    #[must_use]
    pub fn with_headers(self, headers: &'a dyn Headers) -> Self {
        Context { headers, ..self }
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

/// Takes back dropped packets and is told of marks. A [`Queue`](crate::Queue)
/// has its own.
#[derive(Clone, Debug)]
pub struct Sink {
    pub(crate) dropped: Vec<(Packet, Reason)>,
    pub(crate) marked: [u64; Reason::COUNT],
    /// Keys of marked packets, if they are recorded.
    pub(crate) marks: Option<Vec<u64>>,
}

impl Sink {
    /// The packets dropped since the last call, in order; what they hold has
    /// to be freed by whoever owns the buffer.
    pub fn take_dropped(&mut self) -> impl Iterator<Item = (Packet, Reason)> + '_ {
        self.dropped.drain(..)
    }
    /// How many packets were marked for this reason so far.
    pub fn marked(&self, reason: Reason) -> u64 {
        self.marked[reason as usize]
    }
}

impl Default for Sink {
    fn default() -> Self {
        Sink { dropped: Vec::new(), marked: [0; Reason::COUNT], marks: None }
    }
}

impl Context<'_> {
    /// Gives up a packet, be it the arriving one or one from the queue.
    #[inline]
    pub fn drop(&mut self, packet: Packet, reason: Reason) {
        self.sink.dropped.push((packet, reason));
    }

    /// Sets CE on a packet that stays in the queue or is about to leave it.
    ///
    /// # Panics
    /// If the packet is not ECN-capable: its sender would never know
    /// (RFC 3168, section 5).
    #[inline]
    pub fn mark(&mut self, packet: &mut Packet, reason: Reason) {
        assert!(packet.ecn().is_capable(), "a mark on a packet that is not ECN-capable");
        packet.mark();
        self.sink.marked[reason as usize] += 1;
        if let Some(marks) = &mut self.sink.marks {
            marks.push(packet.key);
        }
    }
}

/// The surroundings of a queue: what a discipline may take its defaults from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkEnv {
    /// The rate of the link behind the queue (of its start, if it changes).
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

/// The configuration of a discipline: its parameters, which are also its
/// factory. One `impl` and one line in the registry add a discipline.
pub trait Discipline: Params {
    /// The name in scenario files.
    const NAME: &'static str;
    /// One line for `aqmlab list`.
    const SUMMARY: &'static str;

    /// Whether it ever signals congestion, or only drops for want of room.
    const SIGNALS: bool = true;

    /// [`Discipline::SIGNALS`] of a value.
    fn gives_signals(&self) -> bool {
        Self::SIGNALS
    }

    /// What in it is slowest to follow a change, and how long that takes:
    /// a run has to last longer. `None` if it follows within round trips.
    fn slowest(&self, _env: &LinkEnv) -> Option<(&'static str, Span)> {
        None
    }

    /// Checks what single ranges cannot say (th_min < th_max).
    ///
    /// # Errors
    /// If the parameters contradict each other.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Parameters that a running queue cannot take, because its state is made for their values:
    /// the number of buckets, the variant. Only a new queue has another value.
    const FIXED: &'static [&'static str] = &[];

    /// Makes the state machine.
    fn build(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline>;

    /// Gives these parameters to a queue that [`build`](Self::build) made from others, of which
    /// those of [`FIXED`](Self::FIXED) are equal. The parameters are written; packets, and the
    /// state of the control, stay. What a smaller limit has no room for is dropped. (Linux: the
    /// `change` of a qdisc.)
    fn change(&self, queue: &mut dyn QueueDiscipline, env: &LinkEnv, cx: &mut Context<'_>);
}
