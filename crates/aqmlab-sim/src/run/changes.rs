//! What a change of the scenario does to a run.

use std::sync::Arc;

use aqmlab_core::Time;

use super::events::Event;
use super::simulation::{MTU, Simulation};
use crate::endpoints::End;
use crate::endpoints::flow::{Ends, GONE, NONE};
use crate::scenario::{Change, Effect, FlowGroup, Surroundings};

impl Simulation {
    /// A change of the scenario comes.
    #[inline(never)]
    pub(super) fn change(&mut self) {
        let scenario = Arc::clone(&self.scenario);
        let next =
            scenario.changes.get(self.changed).filter(|next| Time::ZERO + next.at == self.now);
        let Some(change) = next else {
            self.handled -= 1; // It was taken out of the scenario after it had been planned.
            return;
        };
        self.changed += 1;
        match &change.effect {
            Effect::Begin(group) => {
                self.add_routes(*group);
                self.make_flows(*group);
            }
            Effect::Stop(group) => self.stop_group(*group),
            of_link => {
                let (seed, replication) = (scenario.seed, self.replication);
                let end = Time::ZERO + scenario.duration;
                let around = Surroundings { seed, replication, mtu: MTU, end };
                of_link.apply(&mut self.network, self.now, &around);
            }
        }
    }

    /// Has other changes follow the first `index` of the scenario: one that comes next, and those
    /// that were planned already; and the groups of flows that they add.
    pub(super) fn plan(
        &mut self,
        index: usize,
        changes: Vec<Change>,
        flows: Option<Vec<FlowGroup>>,
    ) {
        debug_assert!(index >= self.changed, "what has happened stays");
        self.events.push(Time::ZERO + changes[0].at, Event::Change);
        let scenario = Arc::make_mut(&mut self.scenario);
        scenario.changes.truncate(index);
        scenario.changes.extend(changes);
        if let Some(flows) = flows {
            scenario.flows = flows;
        }
    }

    /// The flows and applications of a group send nothing new.
    fn stop_group(&mut self, group: u32) {
        for app in 0..self.apps.len() as u32 {
            if self.apps[app as usize].group() == group {
                self.stop_app(app);
            }
        }
        for index in 0..self.flows.len() as u32 {
            if self.flows[index as usize].group == group {
                self.stop_flow(index);
            }
        }
    }

    /// A flow sends nothing new; what it has sent is still sent again if it is lost.
    fn stop_flow(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        if flow.finish.is_some() {
            return;
        }
        if let Ends::Datagrams(datagrams) = &mut flow.ends {
            datagrams.tells = false;
            flow.app = GONE;
            return;
        }
        let runs_itself = flow.app == NONE;
        let (was_finite, group) = (flow.size.is_some(), flow.group);
        let sent = flow.source_mut().cut();
        flow.goal = sent;
        flow.size = Some(sent);
        flow.expects = sent;
        flow.awaited = u64::MAX;
        flow.is_open = false;
        flow.app = GONE;
        flow.opening = None;
        if flow.start > self.now {
            flow.finish = Some(self.now);
        } else if flow.is_finished() {
            self.drained(index);
        }
        if runs_itself && was_finite {
            self.unfinished -= usize::from(self.is_awaited(group));
        }
        // What it waits for may have become another moment.
        if self.flows[index as usize].start <= self.now {
            self.arm(index, End::Source);
        }
    }
}
