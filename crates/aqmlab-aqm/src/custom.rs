//! Disciplines that are not in the catalogue: written in another crate, or in
//! another language.
//!
//! A discipline in another crate is written like one of ours: `params!` and an
//! implementation of [`Discipline`]. [`Disciplines`] gives it to whoever reads
//! scenarios, by its name; there is no global registry. `examples/rust-queue`
//! is a whole program.
//!
//! # How it works
//!
//! Building is generic over the packet, which a trait object cannot be. So a
//! custom discipline is built for one type of packet, the [`Handle`], and an
//! adapter stands between: it keeps the real packets, gives handles in, and
//! takes drops, marks and departures of handles out. Time and the random
//! stream are the queue's own, so a discipline of the catalogue that is run
//! through the adapter gives the same results.
//!
//! # What the adapter checks
//!
//! A handle can be neither made nor copied outside, so no packet leaves twice.
//! After every call the discipline's backlog has to be what is in the adapter,
//! a timer must not be set to the past, and `dequeue` has to give a packet if
//! there is one, or set a timer.
//!
//! # Panics
//! A fault of the discipline is a panic that names it.

use alloc::{boxed::Box, string::String, string::ToString, vec::Vec};

use core::fmt;

use aqmlab_core::{
    Added, CustomParams, Ecn, Lookup, Packet, Result, Span, TcpHeader, Time, Value, packet_fields,
};

use crate::discipline::{
    Backlog, Context, Discipline, Headers, LinkEnv, Note, QueueDiscipline, Sink,
};
use crate::disciplines::{QueueConfig, takes};

/// The configuration of a custom discipline: its parameters, and how it is built.
pub trait CustomConfig: CustomParams {
    /// See [`Discipline::SIGNALS`].
    fn gives_signals(&self) -> bool {
        true
    }
    /// See [`Discipline::slowest`].
    fn slowest(&self, _env: &LinkEnv) -> Option<(&'static str, Span)> {
        None
    }
    /// A copy.
    fn boxed_clone(&self) -> Box<dyn CustomConfig>;
    /// Makes the state machine.
    fn build(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline<Handle>>;
    /// Refuses a parameter that a running queue cannot take: see [`Discipline::FIXED`].
    ///
    /// # Errors
    /// If it cannot.
    fn check_change(&self, key: &str) -> Result<()>;
    /// See [`Discipline::change`].
    fn change(
        &self,
        queue: &mut dyn QueueDiscipline<Handle>,
        env: &LinkEnv,
        cx: &mut Context<'_, Handle>,
    );
}

impl Clone for Box<dyn CustomConfig> {
    fn clone(&self) -> Self {
        (**self).boxed_clone()
    }
}

/// Disciplines of another crate. Without any, only the catalogue is known.
#[derive(Default)]
pub struct Disciplines(Added<dyn CustomConfig>);

impl Disciplines {
    /// Adds a discipline under its own name.
    ///
    /// # Errors
    /// If the name is taken.
    pub fn with<D>(self) -> Result<Disciplines>
    where
        D: Discipline + fmt::Debug + Send + Sync + 'static,
    {
        self.0.with::<QueueConfig>(Box::new(Foreign(D::default()))).map(Disciplines)
    }
}

impl Lookup<dyn CustomConfig> for Disciplines {
    fn find(&self, name: &str) -> Result<Option<Box<dyn CustomConfig>>> {
        self.0.find(name)
    }
    fn names(&self) -> Vec<&str> {
        self.0.names()
    }
}

/// The parameters of a discipline of another crate.
#[derive(Debug)]
struct Foreign<D>(D);

impl<D: Discipline + fmt::Debug + Send + Sync> CustomParams for Foreign<D> {
    fn name(&self) -> &str {
        D::NAME
    }
    fn set(&mut self, key: &str, value: &Value) -> Result<()> {
        self.0.set(key, value)
    }
    fn check(&self) -> Result<()> {
        self.0.check()
    }
    fn entries(&self) -> Vec<(&str, Value)> {
        self.0.entries()
    }
}

impl<D: Discipline + fmt::Debug + Send + Sync + 'static> CustomConfig for Foreign<D> {
    fn gives_signals(&self) -> bool {
        D::SIGNALS
    }
    fn slowest(&self, env: &LinkEnv) -> Option<(&'static str, Span)> {
        self.0.slowest(env)
    }
    fn boxed_clone(&self) -> Box<dyn CustomConfig> {
        Box::new(Foreign(self.0.clone()))
    }
    fn build(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline<Handle>> {
        self.0.build(env)
    }
    fn check_change(&self, key: &str) -> Result<()> {
        takes(&self.0, key)
    }
    fn change(
        &self,
        queue: &mut dyn QueueDiscipline<Handle>,
        env: &LinkEnv,
        cx: &mut Context<'_, Handle>,
    ) {
        self.0.change(queue, env, cx);
    }
}

/// Makes the state machine of a custom discipline, behind the adapter.
pub(crate) fn build<P: Packet + Send>(
    config: &dyn CustomConfig,
    env: &LinkEnv,
) -> Box<dyn QueueDiscipline<P>> {
    let inner = config.build(env);
    Box::new(Adapter {
        name: config.name().to_string(),
        wakeup: inner.next_wakeup(),
        inner,
        sink: Sink::default(),
        packets: Vec::new(),
        free: Vec::new(),
        held: Backlog::default(),
    })
}

/// Gives other parameters to a custom discipline that [`build`] made.
pub(crate) fn change<P: Packet + Send>(
    config: &dyn CustomConfig,
    queue: &mut dyn QueueDiscipline<P>,
    env: &LinkEnv,
    cx: &mut Context<'_, P>,
) {
    let adapter = queue.machine::<Adapter<P>>();
    adapter.call(cx, "change", |inner, cx| config.change(inner, env, cx), |_, ()| None);
}

/// A packet as custom disciplines see it: it stands for the real one, which
/// the adapter keeps.
#[derive(Debug)]
pub struct Handle {
    place: u32,
    size: u32,
    flow_hash: u32,
    hosts: [u32; 2],
    class: u8,
    ecn: Ecn,
    marked: bool,
    class_cleared: bool,
    arrival: Time,
}

impl Handle {
    fn of<P: Packet>(packet: &P, place: u32) -> Handle {
        Handle {
            place,
            size: packet.size(),
            flow_hash: packet.flow_hash(),
            hosts: packet.hosts(),
            class: packet.class(),
            ecn: packet.ecn(),
            marked: false,
            class_cleared: false,
            arrival: packet.arrival(),
        }
    }
    /// A number that no other packet in the queue has.
    pub fn place(&self) -> u32 {
        self.place
    }
}

impl Packet for Handle {
    packet_fields!(size, hosts, ecn, arrival);
    fn flow_hash(&self) -> u32 {
        self.flow_hash
    }
    fn class(&self) -> u8 {
        self.class
    }
    fn mark(&mut self) {
        self.ecn = Ecn::Ce;
        self.marked = true;
    }
    fn clear_class(&mut self) {
        self.class = 0;
        self.class_cleared = true;
    }
}

/// Headers of the packets that handles stand for.
struct Through<'a, P> {
    packets: &'a [Option<P>],
    headers: &'a dyn Headers<P>,
}

impl<P> Headers<Handle> for Through<'_, P> {
    fn tcp(&self, handle: &Handle) -> Option<TcpHeader> {
        self.headers.tcp(self.packets.get(handle.place as usize)?.as_ref()?)
    }
}

/// Runs a discipline that knows handles as one that knows packets.
struct Adapter<P> {
    name: String,
    inner: Box<dyn QueueDiscipline<Handle>>,
    sink: Sink<Handle>,
    /// The packets in the queue, by the place that their handles name.
    packets: Vec<Option<P>>,
    free: Vec<u32>,
    held: Backlog,
    /// What the discipline said last; asked for after every call.
    wakeup: Option<Time>,
}

impl<P: Packet> Adapter<P> {
    fn take_in(&mut self, packet: P) -> Handle {
        let place = self.free.pop().unwrap_or(self.packets.len() as u32);
        let handle = Handle::of(&packet, place);
        self.held.packets += 1;
        self.held.bytes += u64::from(handle.size);
        match self.packets.get_mut(place as usize) {
            Some(empty) => *empty = Some(packet),
            None => self.packets.push(Some(packet)),
        }
        handle
    }

    fn give_out(&mut self, handle: Handle) -> P {
        let kept = self.packets.get_mut(handle.place as usize).and_then(Option::take);
        let Some(mut packet) = kept else {
            panic!("{}: gave a packet that is not in this queue", self.name);
        };
        self.free.push(handle.place);
        self.held.packets -= 1;
        self.held.bytes -= u64::from(packet.size());
        if handle.marked {
            packet.mark();
        }
        if handle.class_cleared {
            packet.clear_class();
        }
        packet
    }

    /// Calls the discipline, takes the drops out and checks the books.
    fn call<T>(
        &mut self,
        cx: &mut Context<'_, P>,
        what: &str,
        call: impl FnOnce(&mut dyn QueueDiscipline<Handle>, &mut Context<'_, Handle>) -> T,
        leaves: impl FnOnce(&mut Self, T) -> Option<P>,
    ) -> Option<P> {
        // The counts of marks are lent for the call.
        core::mem::swap(&mut self.sink.marked, &mut cx.sink.marked);
        let headers = Through { packets: &self.packets, headers: cx.headers };
        let mut inner =
            Context::new(cx.now, &mut *cx.random, &mut self.sink).with_headers(&headers);
        let given = call(&mut *self.inner, &mut inner);
        core::mem::swap(&mut self.sink.marked, &mut cx.sink.marked);
        let mut dropped = core::mem::take(&mut self.sink.dropped);
        for (handle, reason) in dropped.drain(..) {
            cx.sink.dropped.push((self.give_out(handle), reason));
        }
        self.sink.dropped = dropped;
        let packet = leaves(self, given);
        let said = self.inner.backlog();
        assert!(
            said == self.held,
            "{}: after {what} its backlog is {said:?}, but {:?} came and neither left nor were dropped",
            self.name,
            self.held,
        );
        self.wakeup = self.inner.next_wakeup();
        // At its own time only a later one: or the clock would stand still.
        let passed =
            self.wakeup.filter(|at| *at < cx.now || (*at == cx.now && what == "on_wakeup"));
        assert!(passed.is_none(), "{}: {what} set the timer to a time that has passed", self.name);
        packet
    }
}

impl<P: Packet + Send> QueueDiscipline<P> for Adapter<P> {
    fn enqueue(&mut self, packet: P, cx: &mut Context<'_, P>) {
        let handle = self.take_in(packet);
        self.call(cx, "enqueue", |inner, cx| inner.enqueue(handle, cx), |_, ()| None);
    }
    fn dequeue(&mut self, cx: &mut Context<'_, P>) -> Option<P> {
        let packet = self.call(
            cx,
            "dequeue",
            |inner, cx| inner.dequeue(cx),
            |adapter, given| given.map(|handle| adapter.give_out(handle)),
        );
        assert!(
            packet.is_some() || self.held == Backlog::default() || self.wakeup.is_some(),
            "{}: dequeue gave no packet and set no timer, but {:?} are in the queue",
            self.name,
            self.held,
        );
        packet
    }
    fn next_wakeup(&self) -> Option<Time> {
        self.wakeup
    }
    fn is_clocked(&self) -> bool {
        false
    }
    fn on_wakeup(&mut self, cx: &mut Context<'_, P>) {
        self.call(cx, "on_wakeup", |inner, cx| inner.on_wakeup(cx), |_, ()| None);
    }
    fn backlog(&self) -> Backlog {
        self.held
    }
    fn list(&self, see: &mut dyn FnMut(&P)) -> bool {
        self.packets.iter().flatten().for_each(see);
        true
    }
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        self.inner.observe(see);
    }
    fn notes(&self) -> Vec<Note> {
        self.inner.notes()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use aqmlab_core::{Stream, params};

    use super::*;
    use crate::discipline::Reason;
    use crate::queue::Queue;
    use crate::testing::{TestPacket, env};

    params! {
        /// What goes wrong.
        pub struct FaultyParams {
            /// The fault.
            fault: String = "none".to_string(), source "these tests";
        }
    }

    impl Discipline for FaultyParams {
        const NAME: &'static str = "faulty";
        const SUMMARY: &'static str = "makes mistakes";
        fn build<P: Packet + Send>(&self, _: &LinkEnv) -> Box<dyn QueueDiscipline<P>> {
            Box::new(Faulty { fault: self.fault.clone(), packets: VecDeque::new() })
        }
        fn change<P: Packet + Send>(
            &self,
            queue: &mut dyn QueueDiscipline<P>,
            _: &LinkEnv,
            _: &mut Context<'_, P>,
        ) {
            queue.machine::<Faulty<P>>().fault.clone_from(&self.fault);
        }
    }

    struct Faulty<P> {
        fault: String,
        packets: VecDeque<P>,
    }

    impl<P: Packet + Send> QueueDiscipline<P> for Faulty<P> {
        fn enqueue(&mut self, mut packet: P, cx: &mut Context<'_, P>) {
            match self.fault.as_str() {
                "loses" => return,
                "marks" => cx.mark(&mut packet, Reason::User),
                "drops the oldest" => {
                    if let Some(oldest) = self.packets.pop_front() {
                        cx.drop(oldest, Reason::User);
                    }
                }
                _ => {}
            }
            self.packets.push_back(packet);
        }
        fn dequeue(&mut self, _: &mut Context<'_, P>) -> Option<P> {
            if self.fault == "idles" { None } else { self.packets.pop_front() }
        }
        fn next_wakeup(&self) -> Option<Time> {
            (self.fault == "wakes in the past").then_some(Time::ZERO)
        }
        fn backlog(&self) -> Backlog {
            let bytes = self.packets.iter().map(|packet| u64::from(packet.size())).sum();
            Backlog { packets: self.packets.len() as u64, bytes }
        }
    }

    fn queue(fault: &str) -> Queue<TestPacket> {
        let mine = Disciplines::default().with::<FaultyParams>().unwrap();
        let table = [("discipline", "faulty"), ("fault", fault)];
        let table = table.map(|(key, text)| (key.to_string(), text.into())).into_iter().collect();
        let config = QueueConfig::read_with(&Value::Table(table), &mine).unwrap();
        Queue::new(config.build(&env()), Stream::from_state(1))
    }

    fn pass(fault: &str) {
        let mut queue = queue(fault);
        queue.enqueue(TestPacket::of_flow(0), Time::from_nanos(5));
        queue.dequeue(Time::from_nanos(6));
    }

    #[test]
    #[should_panic(expected = "faulty: after enqueue its backlog is")]
    fn a_lost_packet_is_found() {
        pass("loses");
    }
    #[test]
    #[should_panic(expected = "faulty: dequeue gave no packet and set no timer, but")]
    fn a_packet_held_back_is_found() {
        pass("idles");
    }
    #[test]
    #[should_panic(expected = "faulty: enqueue set the timer to a time that has passed")]
    fn a_timer_in_the_past_is_found() {
        pass("wakes in the past");
    }

    #[test]
    fn marks_and_drops_reach_the_real_packets() {
        let mut marking = queue("marks");
        marking.enqueue(TestPacket::new(Ecn::Ect0), Time::from_nanos(5));
        assert_eq!(marking.dequeue(Time::from_nanos(6)).unwrap().ecn(), Ecn::Ce);
        assert_eq!(marking.counts().marked[Reason::User as usize], 1);

        let mut dropping = queue("drops the oldest");
        for number in 0..3 {
            dropping.enqueue(TestPacket::of_flow(number), Time::from_nanos(5));
        }
        let mut dropped = Vec::new();
        dropping.take_dropped(|packet, reason| dropped.push((packet.flow_hash(), reason)));
        assert_eq!(dropped, [(0, Reason::User), (1, Reason::User)]);
        assert_eq!(dropping.dequeue(Time::from_nanos(6)).unwrap().flow_hash(), 2);
        dropping.assert_conservation("test");
    }

    #[test]
    fn a_name_is_taken_once() {
        let twice = Disciplines::default().with::<FaultyParams>().unwrap().with::<FaultyParams>();
        assert!(twice.is_err());
        assert!(Disciplines::default().with::<crate::disciplines::codel::CodelParams>().is_err());
    }

    #[test]
    fn custom_names_are_among_the_suggestions_and_keys_are_checked() {
        let mine = Disciplines::default().with::<FaultyParams>().unwrap();
        let error = QueueConfig::read_with(&"fualty".into(), &mine).unwrap_err();
        assert!(error.to_string().contains("did you mean `faulty`?"), "{error}");
        let mut table = aqmlab_core::Table::new();
        table.insert("discipline", "faulty".into());
        table.insert("falt", "none".into());
        let error = QueueConfig::read_with(&Value::Table(table), &mine).unwrap_err();
        assert!(error.to_string().contains("did you mean `fault`?"), "{error}");
    }
}
