//! Changes of the scenario during a run.

use std::sync::Arc;

use aqmlab_core::{Error, Result, Time};

use super::events::Event;
use super::simulation::{MTU, Simulation};
use crate::endpoints::End;
use crate::endpoints::flow::{Ends, GONE, NONE};
use crate::scenario::{
    Change, Effect, FlowGroup, Scenario, Surroundings, TransportChange, TransportKey,
};

impl Simulation {
    /// Handles a change of the scenario.
    #[inline(never)]
    pub(super) fn change(&mut self) {
        let scenario = Arc::clone(&self.scenario);
        let next =
            scenario.changes.get(self.changed).filter(|next| Time::ZERO + next.at == self.now);
        let Some(change) = next else {
            self.handled -= 1; // Removed from the scenario after scheduling.
            return;
        };
        self.changed += 1;
        match &change.effect {
            Effect::Begin(group) => {
                self.add_routes(*group);
                self.make_flows(*group);
            }
            Effect::Stop(group) => self.stop_group(*group),
            Effect::Transport(key, to) => self.change_transport(*key, to),
            of_link => {
                let (seed, replication) = (scenario.seed, self.replication);
                let end = Time::ZERO + scenario.duration;
                let around = Surroundings { seed, replication, mtu: MTU, end };
                of_link.apply(&mut self.network, self.now, &around);
            }
        }
    }

    /// Replaces the changes after the first `index` of the scenario, including scheduled ones, and
    /// adds the groups of flows that the new changes add.
    pub(super) fn plan(
        &mut self,
        index: usize,
        changes: Vec<Change>,
        flows: Option<Vec<FlowGroup>>,
    ) {
        debug_assert!(index >= self.changed, "changes in the past are final");
        self.events.push(Time::ZERO + changes[0].at, Event::Change as u32, 0);
        let scenario = Arc::make_mut(&mut self.scenario);
        scenario.changes.truncate(index);
        scenario.changes.extend(changes);
        if let Some(flows) = flows {
            scenario.flows = flows;
        }
    }

    /// Changes the transport of the flows of a group, and of later ones, or of one flow.
    fn change_transport(&mut self, key: TransportKey, to: &TransportChange) {
        let scenario = Arc::clone(&self.scenario);
        let of_group = self.transports.get(&(to.group, None)).cloned();
        let of_group = of_group.as_deref().unwrap_or(&scenario.flows[to.group as usize].transport);
        if to.member.is_none() {
            self.transports.insert((to.group, None), Arc::clone(&to.transport));
        }
        let mut members = 0..;
        for index in 0..self.flows.len() as u32 {
            let flow = &mut self.flows[index as usize];
            if flow.group != to.group {
                continue;
            }
            let member = members.next();
            if flow.finish.is_some() || to.member.is_some_and(|only| Some(only) != member) {
                continue;
            }
            let own = self.transports.get(&(to.group, member)).cloned();
            let mut after = Arc::clone(&to.transport);
            if to.member.is_none()
                && let Some(own) = &own
            {
                after = Arc::clone(own);
                key.take(Arc::make_mut(&mut after), &to.transport);
            }
            if own.is_some() || to.member.is_some() {
                self.transports.insert((to.group, member), Arc::clone(&after));
            }
            let before = own.as_deref().unwrap_or(of_group);
            let [high, low] = flow.hashes.map(u64::from);
            let Some(tcp) = flow.tcp_mut() else { continue };
            tcp.change(self.now, before, &after, (high << 32 | low) ^ self.now.as_nanos());
            if self.sampled.contains(&to.group)
                && let Some(samples) = tcp.sender.samples()
            {
                samples.get_or_insert_default();
            }
            if flow.start <= self.now {
                self.send(index, End::Source);
            }
        }
    }

    /// Continues with another scenario that differs only in changes that are not made yet.
    pub(super) fn resume(&mut self, scenario: Arc<Scenario>) {
        self.scenario = scenario;
        for change in &self.scenario.changes[self.changed..] {
            self.events.push(Time::ZERO + change.at, Event::Change as u32, 0);
        }
    }

    /// Returns whether the state can be copied; if not, the run can be repeated.
    ///
    /// # Errors
    /// Returns an error that names a queue or a congestion control that refuses copies.
    pub(super) fn check_clone(&self) -> Result<bool> {
        for (link, config) in self.network.links().zip(&self.scenario.links) {
            link.queue
                .check_clone()
                .map_err(|error| error.at(format!("links.{}.queue", config.name)))?;
        }
        let refused = self.flows.iter().find(|flow| !flow.is_cloneable());
        let Some(flow) = refused else { return Ok(true) };
        let group = &self.scenario.flows[flow.group as usize];
        if flow.tcp().is_none() {
            return Ok(false);
        }
        let name = group.transport.congestion_control.name();
        let problem = format!("the state of {name} cannot be copied, so the run has no snapshots");
        Err(Error::new(problem).at(format!("flows.{}.transport.congestion_control", group.name)))
    }

    /// Stops new data of the flows and applications of a group.
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

    /// Stops new data of a flow; lost data is still retransmitted.
    fn stop_flow(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        if flow.finish.is_some() {
            return;
        }
        flow.stop(self.now);
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
        flow.source_mut().finish();
        if flow.start > self.now {
            flow.finish = Some(self.now);
        } else if flow.is_finished() {
            self.drained(index);
        }
        if runs_itself && was_finite {
            self.unfinished -= usize::from(self.is_awaited(group));
        }
        let flow = &self.flows[index as usize];
        if flow.start <= self.now {
            match flow.ends {
                // The end of the data may have to be sent.
                Ends::Other(_) => self.send(index, End::Source),
                // The time of completion may have changed.
                _ => self.arm(index, End::Source),
            }
        }
    }
}
