//! Custom disciplines: written in another crate, or in another language.
//!
//! A discipline in another crate is written like one of the catalogue: `params!` and an
//! implementations of [`Component`](aqmlab_core::Component) and [`Discipline`].
//! [`Disciplines`](crate::Disciplines) makes it known by its name to the functions
//! that read scenarios; there is no global registry. `examples/rust-queue/tests` uses it. The same
//! discipline in a shared library ([`abi`](crate::abi)) runs in all commands of aqmlab.
//!
//! # Checks
//! After every call the discipline's backlog must equal the packets that arrived and were neither
//! sent nor dropped, a timer must not be set to the past, and `dequeue` must return a packet if
//! there is one, or set a timer.
//!
//! # Panics
//! A fault of the discipline is a panic that names it.

use alloc::{boxed::Box, format, string::String, string::ToString, vec::Vec};

use core::any::Any;

use aqmlab_core::{Kind, Packet, Time};

use crate::discipline::{Backlog, Context, Discipline, LinkEnv, Note, QueueDiscipline};

impl dyn Discipline {
    /// Returns a new queue with these parameters, with checks unless the discipline is built in.
    pub fn build_checked(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline> {
        let inner = self.build(env);
        if self.is_built_in() {
            return inner;
        }
        let wakeup = inner.next_wakeup();
        Box::new(Checked { name: self.name().to_string(), wakeup, inner, held: Backlog::default() })
    }

    /// Gives these parameters to a queue that [`build_checked`](Self::build_checked) made.
    pub(crate) fn change_checked(
        &self,
        queue: &mut dyn QueueDiscipline,
        env: &LinkEnv,
        cx: &mut Context<'_>,
    ) {
        let machine: &mut dyn Any = queue;
        if let Some(checked) = machine.downcast_mut::<Checked>() {
            checked.call(cx, "change", |inner, cx| {
                self.change(inner, env, cx);
                None
            });
        } else {
            self.change(queue, env, cx);
        }
    }
}

/// Checks a custom discipline after every call.
#[derive(Clone)]
struct Checked {
    name: String,
    inner: Box<dyn QueueDiscipline>,
    /// Packets that arrived and were neither dropped nor sent.
    held: Backlog,
    /// Answer of the discipline after the last call.
    wakeup: Option<Time>,
}

impl Checked {
    fn require(&self, is_kept: bool, problem: impl FnOnce() -> String) {
        if !is_kept {
            self.inner.refuse(&format!("{}: {}", self.name, problem()));
        }
    }

    /// Counts a packet that is sent or dropped.
    fn leaves(&mut self, packet: &Packet, what: &str) {
        let size = u64::from(packet.size());
        let is_held = self.held.packets > 0 && self.held.bytes >= size;
        self.require(is_held, || format!("{what} sent or dropped more than had arrived"));
        self.held.packets -= 1;
        self.held.bytes -= size;
    }

    /// Calls the discipline and checks its state.
    fn call(
        &mut self,
        cx: &mut Context<'_>,
        what: &str,
        call: impl FnOnce(&mut dyn QueueDiscipline, &mut Context<'_>) -> Option<Packet>,
    ) -> Option<Packet> {
        let dropped = cx.sink.dropped.len();
        let sent = call(&mut *self.inner, cx);
        for (packet, _) in &cx.sink.dropped[dropped..] {
            self.leaves(packet, what);
        }
        if let Some(packet) = &sent {
            self.leaves(packet, what);
        }
        let reported = self.inner.backlog();
        self.require(reported == self.held, || {
            format!(
                "after {what} its backlog is {reported:?}, but {:?} arrived and were neither sent \
                 nor dropped",
                self.held,
            )
        });
        let before = core::mem::replace(&mut self.wakeup, self.inner.next_wakeup());
        // At its own time only a later one: otherwise time would stand still.
        let passed =
            self.wakeup.filter(|at| *at < cx.now || (*at == cx.now && what == "on_wakeup"));
        self.require(passed.is_none(), || {
            format!("{what} set the timer to a time that has passed")
        });
        let is_fixed = self.wakeup == before || !matches!(what, "enqueue" | "dequeue");
        self.require(is_fixed || !self.inner.has_fixed_timer(), || {
            format!("{what} changed the timer, but `has_fixed_timer` is true")
        });
        sent
    }
}

impl QueueDiscipline for Checked {
    fn enqueue(&mut self, packet: Packet, cx: &mut Context<'_>) {
        self.held.packets += 1;
        self.held.bytes += u64::from(packet.size());
        self.call(cx, "enqueue", |inner, cx| {
            inner.enqueue(packet, cx);
            None
        });
    }
    fn dequeue(&mut self, cx: &mut Context<'_>) -> Option<Packet> {
        let packet = self.call(cx, "dequeue", |inner, cx| inner.dequeue(cx));
        let idles = packet.is_none() && self.held != Backlog::default() && self.wakeup.is_none();
        self.require(!idles, || {
            format!(
                "dequeue returned no packet and set no timer, but {:?} are in the queue",
                self.held
            )
        });
        packet
    }
    fn next_wakeup(&self) -> Option<Time> {
        self.wakeup
    }
    fn has_fixed_timer(&self) -> bool {
        self.inner.has_fixed_timer()
    }
    fn on_wakeup(&mut self, cx: &mut Context<'_>) {
        self.call(cx, "on_wakeup", |inner, cx| {
            inner.on_wakeup(cx);
            None
        });
    }
    fn backlog(&self) -> Backlog {
        self.held
    }
    fn list(&self, see: &mut dyn FnMut(&Packet)) -> bool {
        self.inner.list(see)
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

    use aqmlab_core::{Component, Ecn, Stream, Value, params};

    use super::*;
    use crate::discipline::{Disciplines, QueueConfig, Reason};
    use crate::queue::Queue;
    use crate::testing::{TestPacket, env};

    params! {
        /// Parameters of a discipline with a deliberate fault.
        pub struct FaultyParams {
            /// The fault.
            fault: String = "none".to_string(), source "these tests";
        }
    }

    impl Component for FaultyParams {
        const NAME: &'static str = "faulty";
        const SUMMARY: &'static str = "makes mistakes";
    }

    impl Discipline for FaultyParams {
        fn build(&self, _: &LinkEnv) -> Box<dyn QueueDiscipline> {
            Box::new(Faulty { fault: self.fault.clone(), packets: VecDeque::new() })
        }

        fn change(&self, queue: &mut dyn QueueDiscipline, _: &LinkEnv, _: &mut Context<'_>) {
            queue.machine::<Faulty>().fault.clone_from(&self.fault);
        }
    }

    #[derive(Clone)]
    struct Faulty {
        fault: String,
        packets: VecDeque<Packet>,
    }

    impl QueueDiscipline for Faulty {
        fn enqueue(&mut self, mut packet: Packet, cx: &mut Context<'_>) {
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
        fn dequeue(&mut self, _: &mut Context<'_>) -> Option<Packet> {
            match self.fault.as_str() {
                "idles" => None,
                "copies" => self.packets.front().cloned(),
                "invents" => Some(self.packets.pop_front().unwrap_or(Packet::of_flow(0))),
                _ => self.packets.pop_front(),
            }
        }
        fn next_wakeup(&self) -> Option<Time> {
            match self.fault.as_str() {
                "wakes in the past" => Some(Time::ZERO),
                "wakes with packets" => Some(Time::from_nanos(9 - self.packets.len() as u64)),
                _ => None,
            }
        }
        fn backlog(&self) -> Backlog {
            let bytes = self.packets.iter().map(|packet| u64::from(packet.size())).sum();
            Backlog { packets: self.packets.len() as u64, bytes }
        }
    }

    fn mine() -> Disciplines {
        Disciplines::default().with(Box::new(FaultyParams::default())).unwrap()
    }

    fn queue(fault: &str) -> Queue {
        let mine = mine();
        let table = [("discipline", "faulty"), ("fault", fault)];
        let table = table.map(|(key, text)| (key.to_string(), text.into())).into_iter().collect();
        let config = QueueConfig::read_with(&Value::Table(table), &mine).unwrap();
        Queue::new(config.build_checked(&env()), Stream::from_state(1))
    }

    fn pass(fault: &str) {
        let mut queue = queue(fault);
        queue.enqueue(Packet::of_flow(0), Time::from_nanos(5));
        queue.dequeue(Time::from_nanos(6));
        queue.dequeue(Time::from_nanos(7));
    }

    #[test]
    fn broken_rules_are_found() {
        for (fault, expected) in [
            ("loses", "faulty: after enqueue its backlog is"),
            ("idles", "faulty: dequeue returned no packet and set no timer, but"),
            ("copies", "faulty: after dequeue its backlog is"),
            ("invents", "faulty: dequeue sent or dropped more than had arrived"),
            ("wakes in the past", "faulty: enqueue set the timer to a time that has passed"),
            (
                "wakes with packets",
                "faulty: enqueue changed the timer, but `has_fixed_timer` is true",
            ),
        ] {
            let panic = std::panic::catch_unwind(|| pass(fault)).expect_err(fault);
            let text = panic.downcast_ref::<String>().expect("a message");
            assert!(text.contains(expected), "{fault}: {text}");
        }
    }

    #[test]
    fn marks_and_drops_reach_the_real_packets() {
        let mut marking = queue("marks");
        marking.enqueue(Packet::of_ecn(Ecn::Ect0), Time::from_nanos(5));
        assert_eq!(marking.dequeue(Time::from_nanos(6)).unwrap().ecn(), Ecn::Ce);
        assert_eq!(marking.counts().marked[Reason::User as usize], 1);

        let mut dropping = queue("drops the oldest");
        for number in 0..3 {
            dropping.enqueue(Packet::of_flow(number), Time::from_nanos(5));
        }
        let mut dropped = Vec::new();
        dropping.take_dropped(|packet, reason| dropped.push((packet.flow_hash(), reason)));
        assert_eq!(dropped, [(0, Reason::User), (1, Reason::User)]);
        assert_eq!(dropping.dequeue(Time::from_nanos(6)).unwrap().flow_hash(), 2);
        dropping.assert_conservation("test");
    }

    #[test]
    fn a_name_is_taken_once() {
        let twice = mine().with(Box::new(FaultyParams::default()));
        assert!(twice.is_err());
        assert!(mine().with(Box::new(crate::disciplines::codel::CodelParams::default())).is_err());
    }

    #[test]
    fn custom_names_are_among_the_suggestions_and_keys_are_checked() {
        let mine = mine();
        let error = QueueConfig::read_with(&"fualty".into(), &mine).unwrap_err();
        assert!(error.to_string().contains("did you mean `faulty`?"), "{error}");
        let mut table = aqmlab_core::Table::new();
        table.insert("discipline", "faulty".into());
        table.insert("falt", "none".into());
        let error = QueueConfig::read_with(&Value::Table(table), &mine).unwrap_err();
        assert!(error.to_string().contains("did you mean `fault`?"), "{error}");
    }
}
