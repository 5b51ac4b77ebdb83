//! What a change of the scenario does to a run.

use std::sync::Arc;

use aqmlab_core::Time;

use super::events::Event;
use super::simulation::{MTU, Simulation};
use crate::endpoints::End;
use crate::endpoints::flow::{Ends, GONE, NONE};
use crate::scenario::{Effect, Scenario, Surroundings};

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

    /// Has the scenario go on in another way: `scenario` is the present one but for changes
    /// that have not come yet.
    pub(super) fn change_plan(&mut self, scenario: Arc<Scenario>) {
        debug_assert_eq!(scenario.changes[..self.changed], self.scenario.changes[..self.changed]);
        self.scenario = scenario;
        for change in &self.scenario.changes[self.changed..] {
            // Of two events for the same change the second finds nothing to do.
            self.events.push(Time::ZERO + change.at, Event::Change);
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
