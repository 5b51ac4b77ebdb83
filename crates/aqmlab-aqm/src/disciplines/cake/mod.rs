//! CAKE: a shaper, classes of service, hosts and flows that share the link, and
//! COBALT in each flow.
//!
//! # Model
//! Linux's sch_cake. A packet's DSCP selects its tin (`tins.rs`), its flow a queue in the tin
//! (`tin.rs`). The shaper (`shaper.rs`) schedules the next packet: from the highest tin below its
//! share, otherwise from the tin that is due first. Without a shaper the tins take turns by weight.
//! Within a tin, deficit round robin serves the flows, and COBALT marks and drops departing
//! packets. When the buffer is full, the longest queue according to the heap loses its first packet
//! (`heap.rs`). The size of a packet includes the overhead of the link layer
//! (`aqmlab_core::framing`). Superfluous acknowledgements can be dropped (`ack_filter.rs`), and the
//! rate can follow the arrivals (`autorate.rs`).
//!
//! # Sources
//! - Linux's sch_cake, as recorded in the conformance vectors (6.1: one tin,
//!   no shaper) and in connections through the kernel's CAKE (study
//!   linux2026); for all else its arithmetic as in its source.
//! - tc-cake(8) for the parameters; Høiland-Jørgensen, Täht and Morton, "Piece
//!   of CAKE: A Comprehensive Queue Management Solution for Home Gateways", IEEE
//!   LANMAN 2018.
//!
//! # Differences
//! 1. The memory of a packet is its size on the wire; Linux counts the
//!    kernel's buffers. Queues are compared by these sizes too; Linux adds the
//!    device's header.
//! 2. `nat` and `split-gso` change nothing, `fwmark` and filters are not
//!    modelled: there is nothing that they could look at.
//! 3. The acknowledgement filter: see `ack_filter.rs`.
//! 4. A pair of hosts (`isolation = hosts`) is hashed from both; Linux takes the
//!    exclusive or of their hashes.
//! 5. `perturb`, which Linux does not have: packets move to their new queues tin
//!    by tin in the order of the old queues' numbers, and their flows are new.
//! 6. A change of the overhead counts for queued packets too; Linux, cake_overhead, counts
//!    it as they arrive.
//! 7. Without a bandwidth, after a change to eight tins, the turns may begin at another tin.
//! 8. COBALT's inverse roots of small counts are those of Linux 6.1; in 6.12 that of 2 is 0.06 %
//!    larger.

use alloc::{boxed::Box, vec::Vec};

use aqmlab_core::{Component, Framing, Limit, Packet, Rate, Time};

mod ack_filter;
mod autorate;
mod heap;
mod lists;
mod settings;
mod shaper;
mod tin;
mod tins;

pub use ack_filter::AckFilter;
pub use settings::{Bandwidth, CakeIsolation, CakeParams, Rtt};
pub use tins::Diffserv;

use self::autorate::Autorate;
use self::heap::Heap;
use self::shaper::Shaper;
use self::tin::{Plan, Tin, bytes_in};
use crate::discipline::{Backlog, Context, Discipline, LinkEnv, QueueDiscipline, Reason};

impl Component for CakeParams {
    const NAME: &'static str = "cake";
    const SUMMARY: &'static str =
        "a shaper, tins by DSCP, hosts and flows that share, COBALT in each flow: CAKE";
}

impl Discipline for CakeParams {
    fn shapes_to(&self) -> Option<Rate> {
        self.bandwidth.0
    }

    fn fixed(&self) -> &'static [&'static str] {
        &["flows", "hashing", "ways", "variant"]
    }

    fn build(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline> {
        Box::new(Cake {
            tins: self.plans(env).into_iter().map(|plan| self.tin(plan)).collect(),
            tin_of: self.diffserv.map(),
            unused: Vec::new(),
            current: 0,
            given: self.bandwidth,
            bandwidth: self.bandwidth,
            shaper: Shaper::new(self.bandwidth.0),
            estimate: Autorate::new(self.bandwidth.0),
            autorate: self.autorate_ingress.then(|| Box::new((self.clone(), *env))),
            last_arrival: None,
            wakeup: None,
            framing: self.framing.resolve_on_device(env.header),
            heap: Heap::default(),
            limit: self.limit(env),
            total: Backlog::default(),
            ack_filter: self.ack_filter,
            wash: self.wash,
            ingress: self.ingress,
        })
    }

    fn change(&self, queue: &mut dyn QueueDiscipline, env: &LinkEnv, cx: &mut Context<'_>) {
        queue.machine::<Cake>().change(self.clone(), env, cx);
    }
}

/// The state machine.
#[derive(Clone)]
struct Cake {
    tins: Vec<Tin>,
    /// Tins that a change removed, the lowest last: they keep the state of their flows.
    unused: Vec<Tin>,
    /// The tin of each codepoint.
    tin_of: [u8; 64],
    /// The tin served last.
    current: usize,
    /// The bandwidth as the parameters have it, and as it is.
    given: Bandwidth,
    bandwidth: Bandwidth,
    shaper: Shaper,
    /// Bandwidth estimator, and if it is used, the parameters that depend on the estimate.
    estimate: Autorate,
    autorate: Option<Box<(CakeParams, LinkEnv)>>,
    last_arrival: Option<Time>,
    /// When packets that were held back may go.
    wakeup: Option<Time>,
    framing: Framing,
    heap: Heap,
    limit: Limit,
    total: Backlog,
    ack_filter: AckFilter,
    wash: bool,
    ingress: bool,
}

/// Result of serving a flow.
enum Served {
    Packet(Packet),
    /// A packet was dropped, and its time counts.
    Dropped,
    Nothing,
}

impl Cake {
    fn is_over_limit(&self) -> bool {
        self.total.exceeds(self.limit)
    }

    /// A packet has left the queues.
    fn uncount(&mut self, tin: usize, packet: &Packet) {
        for backlog in [&mut self.total, &mut self.tins[tin].backlog] {
            backlog.packets -= 1;
            backlog.bytes -= u64::from(packet.size());
        }
    }

    /// Puts a packet into its queue.
    fn push(&mut self, tin: usize, packet: Packet) -> u32 {
        for backlog in [&mut self.total, &mut self.tins[tin].backlog] {
            backlog.packets += 1;
            backlog.bytes += u64::from(packet.size());
        }
        let tin = &mut self.tins[tin];
        let index = tin.queue_of(&packet);
        tin.flows[index as usize].fifo.push(packet);
        index
    }

    /// Drops the acknowledgement, if any, that the last packet of a queue makes superfluous.
    fn filter(&mut self, tin: usize, index: u32, cx: &mut Context<'_>) {
        let fifo = &mut self.tins[tin].flows[index as usize].fifo;
        let place = self.ack_filter.find(fifo, cx.headers);
        let Some(ack) = place.and_then(|place| fifo.remove(place)) else { return };
        self.uncount(tin, &ack);
        self.charge_drop(tin, &ack, cx.now);
        cx.drop(ack, Reason::AckFilter);
    }

    /// The queue has got a packet: its flow gets in line.
    fn line_up(&mut self, tin: usize, index: u32, cx: &mut Context<'_>) {
        self.heap.grown(tin as u32, index, bytes_in(&self.tins));
        self.tins[tin].arrived(index, cx.random);
    }

    /// Takes the first packet of a queue.
    fn pop(&mut self, tin: usize, index: u32) -> Option<Packet> {
        let packet = self.tins[tin].flows[index as usize].fifo.pop()?;
        self.uncount(tin, &packet);
        self.heap.shrunk(tin as u32, index, bytes_in(&self.tins));
        Some(packet)
    }

    /// So many bytes of a tin were sent, or dropped.
    fn charge(&mut self, tin: usize, bytes: u64, dropped: bool, now: Time) {
        self.tins[tin].schedule.charge(bytes, now);
        self.shaper.charge(bytes, dropped);
    }

    /// A packet was dropped that did not have its turn.
    fn charge_drop(&mut self, tin: usize, packet: &Packet, now: Time) {
        if self.ingress {
            self.charge(tin, u64::from(self.framing.wire_size(packet.size())), true, now);
        }
    }

    /// A flow had its turn: so many bytes of it were sent, or dropped.
    fn charge_flow(&mut self, tin: usize, index: u32, bytes: u64, dropped: bool, now: Time) {
        self.charge(tin, bytes, dropped, now);
        let tin = &mut self.tins[tin];
        tin.flows[index as usize].deficit -= bytes as i64;
        tin.deficit -= bytes as i64;
    }

    /// Updates the bandwidth after a packet arrives at a queue that held `before`, when the packet
    /// before it came at `last`. Sizes include the device's header.
    fn measure(&mut self, before: Backlog, last: Option<Time>, now: Time) {
        let Some(autorate) = &mut self.autorate else { return };
        let (params, env) = &mut **autorate;
        let counted =
            |backlog: Backlog| (backlog.bytes + backlog.packets * u64::from(env.header)) as i64;
        let bytes = counted(self.total) - counted(before);
        let Some(rate) = self.estimate.arrived(bytes, last, now) else { return };
        params.bandwidth = Bandwidth(rate);
        let (plans, limit) = (params.plans(env), params.limit(env));
        self.set_bandwidth(Bandwidth(rate), plans, limit);
    }

    /// Continues the existing tins and the shaper at another bandwidth.
    fn set_bandwidth(
        &mut self,
        bandwidth: Bandwidth,
        plans: impl IntoIterator<Item = Plan>,
        limit: Limit,
    ) {
        for (tin, plan) in self.tins.iter_mut().zip(plans) {
            tin.change(plan);
        }
        (self.bandwidth, self.limit) = (bandwidth, limit);
        self.shaper.set_rate(bandwidth.0);
        if self.tins.len() < Heap::TINS as usize {
            self.current = 0; // Linux clears tins that it does not use, and ends at the last.
        }
    }

    /// Linux, cake_change and cake_reconfigure: writes parameters; existing tins continue. Packets
    /// of removed tins are dropped (cake_clear_tin), others stay in their tins. The flows of a
    /// removed tin keep their state until it is used again. A smaller limit applies from the next
    /// arrival.
    fn change(&mut self, mut params: CakeParams, env: &LinkEnv, cx: &mut Context<'_>) {
        let given = core::mem::replace(&mut self.given, params.bandwidth);
        if given == params.bandwidth {
            params.bandwidth = self.bandwidth; // perhaps as it was measured
        }
        self.tin_of = params.diffserv.map();
        self.framing = params.framing.resolve_on_device(env.header);
        (self.ack_filter, self.wash, self.ingress) =
            (params.ack_filter, params.wash, params.ingress);
        let mut plans = params.plans(env);
        for tin in plans.len()..self.tins.len() {
            self.clear_tin(tin, cx);
        }
        self.unused.extend(self.tins.drain(plans.len().min(self.tins.len())..).rev());
        while self.tins.len() < plans.len()
            && let Some(tin) = self.unused.pop()
        {
            self.tins.push(tin);
        }
        for tin in &mut self.tins {
            tin.share(&params, cx.now);
        }
        let new = plans.split_off(self.tins.len());
        self.tins.extend(new.into_iter().map(|plan| params.tin(plan)));
        self.set_bandwidth(params.bandwidth, plans, params.limit(env));
        self.autorate = params.autorate_ingress.then(|| Box::new((params, *env)));
    }

    fn clear_tin(&mut self, tin: usize, cx: &mut Context<'_>) {
        for index in 0..self.tins[tin].flows.len() as u32 {
            while let Some(packet) = self.pop(tin, index) {
                cx.drop(packet, Reason::Overlimit);
            }
        }
    }

    /// Drops the first packet of what the heap holds for the longest queue.
    fn drop_from_longest(&mut self, cx: &mut Context<'_>) {
        let flows = self.tins[0].flows.len();
        let (tin, index) = self.heap.top(flows, bytes_in(&self.tins));
        let packet = self.pop(tin as usize, index).expect("something is over the limit");
        self.charge_drop(tin as usize, &packet, cx.now);
        cx.drop(packet, Reason::Overlimit);
        let tin = &mut self.tins[tin as usize];
        tin.flows[index as usize].cobalt.overflowed(&tin.plan.law, cx.now);
    }

    /// The tin to serve; there are packets, so one is busy.
    #[inline]
    fn choose_tin(&mut self, now: Time) -> usize {
        debug_assert!(self.tins.iter().any(Tin::is_busy), "packets are in flows on lists");
        if self.bandwidth.0.is_none() {
            loop {
                let tin = &mut self.tins[self.current];
                if tin.deficit >= 0 && tin.is_busy() {
                    return self.current;
                }
                if tin.deficit <= 0 {
                    tin.deficit += tin.plan.weight;
                }
                self.current = (self.current + 1) % self.tins.len();
            }
        }
        let (mut best, mut earliest) = (0, Time::MAX);
        for (index, tin) in self.tins.iter().enumerate().filter(|(_, tin)| tin.is_busy()) {
            let due = tin.schedule.next();
            if due <= now || due <= earliest {
                (best, earliest) = (index, due);
            }
        }
        self.current = best;
        best
    }

    /// The next packet of a tin; `None` if a flow was found empty first.
    fn serve(&mut self, tin: usize, is_first: &mut bool, cx: &mut Context<'_>) -> Option<Packet> {
        loop {
            let index = self.tins[tin].next(core::mem::take(is_first));
            if self.tins[tin].flows[index as usize].deficit <= 0 {
                self.tins[tin].used_up(index, cx.random);
                continue;
            }
            match self.take(tin, index, cx) {
                Served::Packet(packet) => return Some(packet),
                Served::Dropped => (),
                Served::Nothing => {
                    self.tins[tin].ran_empty(index, cx.now);
                    return None;
                }
            }
        }
    }

    /// The next packet of a flow that passes COBALT.
    fn take(&mut self, tin: usize, index: u32, cx: &mut Context<'_>) -> Served {
        while let Some(packet) = self.pop(tin, index) {
            let bytes = u64::from(self.framing.wire_size(packet.size()));
            let within = &mut self.tins[tin];
            let harmless = within.harmless(self.ingress);
            let flow = &mut within.flows[index as usize];
            let is_last = flow.fifo.is_empty();
            match flow.cobalt.release(&within.plan.law, harmless, packet, is_last, true, cx) {
                Ok(packet) => {
                    self.charge_flow(tin, index, bytes, false, cx.now);
                    self.heap.departed();
                    return Served::Packet(packet);
                }
                Err((packet, reason)) => {
                    cx.drop(packet, reason);
                    if self.ingress {
                        self.charge_flow(tin, index, bytes, true, cx.now);
                        return Served::Dropped;
                    }
                }
            }
        }
        Served::Nothing
    }
}

impl QueueDiscipline for Cake {
    fn enqueue(&mut self, mut packet: Packet, cx: &mut Context<'_>) {
        let tin = usize::from(self.tin_of[usize::from(packet.class() & 63)]);
        if self.wash {
            packet.clear_class();
        }
        if self.tins[tin].backlog.packets == 0 {
            self.tins[tin].schedule.wake(cx.now);
            if self.total.packets == 0 {
                self.shaper.wake(cx.now);
            }
        }
        let before = self.total;
        let index = self.push(tin, packet);
        if self.ack_filter != AckFilter::None {
            self.filter(tin, index, cx);
        }
        let last = self.last_arrival.replace(cx.now);
        match self.autorate {
            Some(_) => self.measure(before, last, cx.now),
            None => self.estimate.ignored(),
        }
        self.line_up(tin, index, cx);
        while self.is_over_limit() {
            self.drop_from_longest(cx);
        }
    }

    fn dequeue(&mut self, cx: &mut Context<'_>) -> Option<Packet> {
        self.wakeup = None;
        let mut is_first = true;
        while self.total.packets > 0 {
            self.wakeup = self.shaper.held_until(cx.now);
            if self.wakeup.is_some() {
                return None;
            }
            let tin = self.choose_tin(cx.now);
            if let Some(packet) = self.serve(tin, &mut is_first, cx) {
                return Some(packet);
            }
        }
        None
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.tins[0].next_change_or(self.wakeup)
    }

    fn has_fixed_timer(&self) -> bool {
        false
    }

    fn on_wakeup(&mut self, cx: &mut Context<'_>) {
        self.wakeup = self.wakeup.filter(|wakeup| *wakeup > cx.now);
        for tin in 0..self.tins.len() {
            for packet in self.tins[tin].rehash_if_due(cx.now, cx.random) {
                self.uncount(tin, &packet);
                let index = self.push(tin, packet);
                self.line_up(tin, index, cx);
                self.heap.disordered();
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.total
    }

    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        let flows = || self.tins.iter().flat_map(|tin| &tin.flows);
        let active = || flows().filter(|flow| !flow.fifo.is_empty());
        see("active_flows", active().count() as f64);
        see("dropping_flows", active().filter(|flow| flow.cobalt.is_dropping()).count() as f64);
        see("blue_probability", flows().map(|flow| flow.cobalt.probability()).fold(0.0, f64::max));
    }
}

#[cfg(test)]
mod tests;
