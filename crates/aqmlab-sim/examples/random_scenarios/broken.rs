//! A fault of an engine, for a test of all this: a queue that loses packets and counts none.

use aqmlab_aqm::fifo::Fifo;
use aqmlab_aqm::{Backlog, Context, Discipline, Disciplines, LinkEnv, QueueDiscipline};
use aqmlab_core::{Component, Packet, Table, Value, params};

params! {
    /// The parameters of the queue.
    pub struct BrokenParams {
        /// Interval of lost packets.
        every: u64 = 20, in 1 => 1000, source "made up";
    }
}

impl Component for BrokenParams {
    const NAME: &'static str = "broken";
    const SUMMARY: &'static str = "loses packets without a word";
}

impl Discipline for BrokenParams {
    fn build(&self, _: &LinkEnv) -> Box<dyn QueueDiscipline> {
        Box::new(Broken { every: self.every, seen: 0, fifo: Fifo::default() })
    }

    fn change(&self, queue: &mut dyn QueueDiscipline, _: &LinkEnv, _: &mut Context<'_>) {
        queue.machine::<Broken>().every = self.every;
    }
}

#[derive(Clone)]
struct Broken {
    every: u64,
    seen: u64,
    fifo: Fifo,
}

impl QueueDiscipline for Broken {
    fn enqueue(&mut self, packet: Packet, _: &mut Context<'_>) {
        self.seen += 1;
        if !self.seen.is_multiple_of(self.every) {
            self.fifo.push(packet);
        }
    }
    fn dequeue(&mut self, _: &mut Context<'_>) -> Option<Packet> {
        self.fifo.pop()
    }
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
}

/// Custom components that scenarios may name.
pub fn disciplines() -> Disciplines {
    Disciplines::default().with(Box::new(BrokenParams::default())).expect("the name is free")
}

/// Puts the queue at the first link of a scenario.
pub fn plant(scenario: &mut Table) {
    let Some(Value::Table(links)) = scenario.get("links") else { return };
    let mut links = links.clone();
    let first = links.iter().next().map(|(name, link)| (name.to_string(), link.clone()));
    if let Some((name, Value::Table(mut link))) = first {
        link.insert("queue", BrokenParams::NAME.into());
        links.insert(&name, Value::Table(link));
        scenario.insert("links", Value::Table(links));
    }
}
