//! A flow: two endpoints, and the links between them in both directions.

use aqmlab_core::{Ecn, Span, Time};
use aqmlab_tcp::{Ack, CeCount, DataSegment, Receiver, Sender, TcpParams};

use super::packet::{SimPacket, Store, kind};
use crate::network::{Position, RouteId};
use crate::run::app::Volume;
use crate::run::events::{Event, Events};

/// No application: the flow runs by itself.
pub(crate) const NONE: u32 = u32::MAX;
/// An application that is gone.
pub(crate) const GONE: u32 = u32::MAX - 1;

/// One flow.
pub(crate) struct Flow {
    /// Which group of the scenario it belongs to.
    pub group: u32,
    pub sender: Sender,
    pub receiver: Receiver,
    /// The route from sender to receiver, and the one back.
    pub routes: [RouteId; 2],
    /// Bytes to transfer; `None` without end.
    pub size: Option<u64>,
    pub start: Time,
    /// When the last byte was acknowledged.
    pub finish: Option<Time>,
    /// The application that it belongs to, or [`NONE`].
    pub app: u32,
    /// The application may write more.
    pub is_open: bool,
    /// It comes and goes: it has no row in the results unless all have.
    pub is_transient: bool,
    /// Its data go along the group's return path.
    pub is_turned: bool,
    /// The bytes that are to arrive: all, or what is written so far.
    pub goal: u64,
    /// The application wants to be told when so many have: the goal, unless it
    /// asked for less.
    pub expects: u64,
    /// With so many bytes received there is something to do: [`Opening`], or
    /// what the application expects.
    pub awaited: u64,
    /// Segments that were sent in the warm-up.
    pub sent_before: u64,
    /// Bytes on the wire that its sender sent, those sent again among them.
    pub sent_bytes: u64,
    /// The other direction of its connection, which is being opened.
    pub opening: Option<(u32, Opening)>,
    index: u32,
    /// Hashes of the two directions, as queues see them.
    hashes: [u32; 2],
    /// The sender's and the receiver's host.
    hosts: [u32; 2],
    pub class: u8,
    header: u32,
    mss: u64,
    /// Data packets carry when they were sent: for timestamps, or to be measured.
    carries_time: bool,
    /// What the one-way delays of data packets sum up to, if they are measured.
    pub delays: Option<Delays>,
    /// The window that plain acknowledgements advertise.
    window: u64,
    sender_timer: Pending,
    receiver_timer: Pending,
}

/// One-way delays of a flow's data packets.
#[derive(Clone, Copy, Default)]
pub(crate) struct Delays {
    count: u64,
    sum: u128,
    pub max: Span,
}

impl Delays {
    fn add(&mut self, delay: Span) {
        self.count += 1;
        self.sum += u128::from(delay.as_nanos());
        self.max = self.max.max(delay);
    }
    /// The mean in seconds; NaN without packets.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count as f64 * 1e-9
    }
}

/// How far the opening of a connection has come that carries data both ways.
/// Its two directions are flows; the SYN of the first, its SYN-ACK and the
/// first data after them are the handshake of both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Opening {
    /// The passive side waits for the SYN.
    Listen,
    /// It has the SYN, and waits for what answers its SYN-ACK.
    SynReceived,
}

/// When the pending events of a timer are due, the next first: of more than
/// these the latest are forgotten. An event may come early (the deadline moved
/// on meanwhile): it is asked for again then. A timer that alternates between
/// near and far deadlines (pacing, retransmission) so does not leave an event
/// behind each time.
struct Pending([Time; 3]);

impl Default for Pending {
    fn default() -> Self {
        Pending([Time::MAX; 3])
    }
}

impl Pending {
    /// Whether an event has to be asked for: none is pending so early.
    #[inline]
    fn asks_for(&mut self, deadline: Time) -> bool {
        let [first, second, _] = self.0;
        if deadline >= first {
            return false;
        }
        self.0 = [deadline, first, second];
        true
    }
    /// An event came.
    #[inline]
    fn came(&mut self, now: Time) {
        let [first, second, third] = self.0;
        if now == first {
            self.0 = [second, third, Time::MAX];
        }
    }
}

/// What [`Flow::new`] needs to know.
pub(crate) struct FlowSetup<'a> {
    pub index: u32,
    pub group: u32,
    pub transport: &'a TcpParams,
    pub routes: [RouteId; 2],
    pub size: Option<u64>,
    pub start: Time,
    pub app: u32,
    pub is_open: bool,
    pub is_transient: bool,
    pub is_turned: bool,
    pub hashes: [u32; 2],
    pub seed: u64,
    pub hosts: [u32; 2],
    pub class: u8,
    pub delays: bool,
}

impl FlowSetup<'_> {
    /// Has the data go along the group's return path.
    pub fn turn(&mut self) {
        self.routes.reverse();
        self.hosts.reverse();
        self.is_turned = true;
    }
}

impl Flow {
    pub fn new(setup: FlowSetup) -> Self {
        let receiver = Receiver::new(setup.transport);
        let goal = setup.size.unwrap_or(0);
        Flow {
            group: setup.group,
            sender: Sender::new(setup.transport, setup.size, setup.seed),
            window: receiver.window(),
            receiver,
            routes: setup.routes,
            size: setup.size.filter(|_| !setup.is_open),
            start: setup.start,
            finish: None,
            app: setup.app,
            is_open: setup.is_open,
            is_transient: setup.is_transient,
            is_turned: setup.is_turned,
            goal,
            expects: goal,
            awaited: if goal > 0 { goal } else { u64::MAX },
            sent_before: 0,
            sent_bytes: 0,
            opening: None,
            index: setup.index,
            hashes: setup.hashes,
            hosts: setup.hosts,
            class: setup.class,
            header: setup.transport.header.get() as u32,
            mss: setup.transport.mss.get(),
            carries_time: setup.transport.timestamps || setup.delays,
            delays: setup.delays.then(Delays::default),
            sender_timer: Pending::default(),
            receiver_timer: Pending::default(),
        }
    }

    /// Whether a packet is of this flow, and not of one that had its place
    /// before: it bears the flow's hash.
    #[inline]
    pub fn owns(&self, packet: &SimPacket) -> bool {
        packet.hash == self.hashes[usize::from(packet.kind & kind::ACK)]
    }

    /// The payload of a data packet.
    #[inline]
    pub fn segment_of(&self, packet: &SimPacket, store: &mut Store) -> DataSegment {
        if packet.is(kind::STORED) {
            return DataSegment { ecn: packet.ecn, ..store.take_data(packet.seq) };
        }
        DataSegment {
            seq: packet.seq,
            len: packet.size - self.header,
            syn: packet.is(kind::SYN),
            retransmission: packet.is(kind::RETRANSMISSION),
            ecn: packet.ecn,
            cwr: packet.is(kind::CWR),
            sent_at: Time::ZERO,
            echo: Time::ZERO,
        }
    }

    /// A data packet has arrived that is measured: its one-way delay.
    #[inline(never)]
    pub fn delayed(&mut self, now: Time, segment: &DataSegment) -> Option<Span> {
        let delays = self.delays.as_mut().filter(|_| !segment.syn)?;
        let delay = now - segment.sent_at;
        delays.add(delay);
        Some(delay)
    }

    /// The acknowledgement that a packet carries.
    #[inline]
    pub fn ack_of(&self, packet: &SimPacket, store: &mut Store) -> Ack {
        if packet.is(kind::STORED) {
            store.take_ack(packet.seq)
        } else {
            Ack {
                ack: packet.seq,
                syn: packet.is(kind::SYN),
                ece: packet.is(kind::ECE),
                window: self.window,
                ..Ack::default()
            }
        }
    }

    /// The next data packet that may be sent now.
    #[inline]
    pub fn poll_data(&mut self, now: Time, store: &mut Store) -> Option<SimPacket> {
        let segment = self.sender.poll(now)?;
        let mut bits = 0;
        if segment.syn {
            bits |= kind::SYN;
        }
        if segment.retransmission {
            bits |= kind::RETRANSMISSION;
        }
        if segment.cwr {
            bits |= kind::CWR;
        }
        let seq = if self.carries_time {
            bits |= kind::STORED;
            store.put_data(segment)
        } else {
            segment.seq
        };
        let size = self.header + segment.len;
        self.sent_bytes += u64::from(size);
        Some(self.packet(seq, size, bits, segment.ecn))
    }

    /// The next acknowledgement that is due.
    #[inline]
    pub fn poll_ack(&mut self, now: Time, store: &mut Store) -> Option<SimPacket> {
        let ack = self.receiver.poll(now)?;
        let mut bits = kind::ACK;
        if ack.syn {
            bits |= kind::SYN;
        }
        if ack.ece {
            bits |= kind::ECE;
        }
        let plain = ack.sack.is_empty()
            && ack.window == self.window
            && ack.ce == CeCount::default()
            && ack.timestamps.is_none();
        let seq = if plain {
            ack.ack
        } else {
            bits |= kind::STORED;
            store.put_ack(ack)
        };
        Some(self.packet(seq, self.header, bits, Ecn::NotEct))
    }

    fn packet(&self, seq: u64, size: u32, bits: u8, ecn: Ecn) -> SimPacket {
        let [sender, receiver] = self.hosts;
        SimPacket {
            arrival: Time::ZERO,
            seq,
            flow: self.index,
            hash: self.hashes[usize::from(bits & kind::ACK)],
            size,
            kind: bits,
            ecn,
            position: Position::default(),
            class: self.class,
            hosts: if bits & kind::ACK == 0 { [sender, receiver] } else { [receiver, sender] },
        }
    }

    /// What it has sent and delivered.
    pub fn volume(&self) -> Volume {
        Volume { sent: self.sent_bytes, delivered: self.sender.stats().bytes_acked }
    }

    /// Whether the receiver's window, and not the congestion window, holds the
    /// sender back: less than a segment lies between the two.
    pub fn is_held_by_receiver(&self) -> bool {
        self.sender.cwnd() + self.mss > self.receive_window()
    }

    /// The window that the receiver advertises.
    pub fn receive_window(&self) -> u64 {
        self.receiver.window()
    }

    /// Sees to it that an event is pending no later than the sender's deadline.
    #[inline]
    pub fn arm_sender(&mut self, events: &mut Events) {
        if let Some(deadline) = self.sender.next_timeout()
            && self.sender_timer.asks_for(deadline)
        {
            events.push(deadline, Event::SenderTimer(self.index));
        }
    }

    /// The same for the receiver's.
    #[inline]
    pub fn arm_receiver(&mut self, events: &mut Events) {
        if let Some(deadline) = self.receiver.next_timeout()
            && self.receiver_timer.asks_for(deadline)
        {
            events.push(deadline, Event::ReceiverTimer(self.index));
        }
    }

    /// A sender's timer event came; whether the timer really ran out.
    pub fn sender_timer_due(&mut self, now: Time) -> bool {
        self.sender_timer.came(now);
        self.sender.next_timeout().is_some_and(|deadline| deadline <= now)
    }

    /// The same for the receiver's.
    pub fn receiver_timer_due(&mut self, now: Time) -> bool {
        self.receiver_timer.came(now);
        self.receiver.next_timeout().is_some_and(|deadline| deadline <= now)
    }
}
