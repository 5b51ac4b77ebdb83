//! One command in each host.

use std::ffi::OsString;
use std::net::Ipv4Addr;

use aqmlab_core::{Result, Time};
use aqmlab_sim::Scenario;

use super::{Hosts, Job, RunTimes};
use crate::netns::init::start;
use crate::observe::Recordings;
use crate::params::EmulatorParams;
use crate::report::Outcome;
use crate::routing::Topology;
use crate::shell::is_interactive;
use crate::sys::process::{Foreground, Pid, Signals, is_foreground, lead_foreground};
use crate::sys::{failed, files};

/// File with the names of hosts.
const HOSTS: &str = "/etc/hosts";

/// Commands to run in the hosts.
pub struct Commands {
    /// Names of the hosts.
    pub names: Vec<String>,
    /// By host: a command with its arguments, or nothing.
    pub words: Vec<Vec<OsString>>,
    /// Host whose command determines the end of the run.
    pub main: usize,
    /// Environment variables for all commands.
    pub environment: Vec<(OsString, OsString)>,
    /// Recordings made while packets pass.
    pub recordings: Recordings,
}

/// Runs the commands in hosts connected by the links of `scenario`.
///
/// # Errors
/// See [`super::run`].
pub fn run(
    scenario: &Scenario,
    topology: &Topology,
    commands: &Commands,
    params: &EmulatorParams,
) -> Result<Outcome> {
    let _terminal = Foreground::here();
    // In the process namespace of the hosts the group of this process has no number.
    let leads = is_foreground() && is_interactive(&commands.words[commands.main]);
    let job = HostCommands { commands, leads };
    let times = RunTimes { end: Time::MAX, warmup: Time::ZERO + scenario.record.warmup };
    super::run(scenario, topology, &job, times, &commands.recordings, params)
}

/// Commands to start, the main one perhaps as a shell in the foreground of the terminal.
struct HostCommands<'a> {
    commands: &'a Commands,
    leads: bool,
}

/// Returns the name of the variable with a host's address.
fn variable(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    format!("AQMLAB_HOST_{}", name.to_ascii_uppercase().chars().map(plain).collect::<String>())
}

impl Commands {
    fn environment_of(&self, host: usize, hosts: &Hosts) -> Vec<(OsString, OsString)> {
        let mut all = self.environment.clone();
        all.retain(|(key, _)| !key.as_encoded_bytes().starts_with(b"AQMLAB_"));
        let near = |host: usize| hosts.blocks[host].near().0.to_string();
        let mut set = |key: &str, value: String| all.push((key.into(), value.into()));
        for (number, name) in self.names.iter().enumerate() {
            set(&variable(name), near(number));
        }
        set("AQMLAB_HOST", self.names[host].clone());
        set("AQMLAB_NEAR", near(host));
        if self.names.len() == 2 {
            set("AQMLAB_FAR", near(1 - host));
        }
        all
    }
}

impl Job for HostCommands<'_> {
    /// Makes host names resolvable.
    fn prepare(&self, hosts: &Hosts) -> Result<()> {
        let mut text = format!("{} localhost\n::1 localhost\n", Ipv4Addr::LOCALHOST);
        for (name, block) in self.commands.names.iter().zip(&hosts.blocks) {
            let (v4, v6) = block.near();
            text.push_str(&format!("{v4} {name}\n{v6} {name}\n"));
        }
        files::cover(HOSTS, &text).map_err(|error| failed(HOSTS, &error))
    }

    fn start(&self, hosts: &Hosts, _zero: u64, signals: &Signals) -> Option<Pid> {
        let Commands { words, main, .. } = self.commands;
        let others = (0..words.len()).filter(|host| host != main);
        let mut pid = None;
        for host in others.chain([*main]).filter(|host| !words[*host].is_empty()) {
            if self.leads && host == *main {
                lead_foreground();
            }
            let environment = self.commands.environment_of(host, hosts);
            let namespace = Some(&hosts.namespaces[host]);
            pid = start(&words[host], &environment, namespace, signals, !hosts.brokers.is_empty());
        }
        pid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hosts_become_names_of_variables() {
        assert_eq!(variable("web-server.1"), "AQMLAB_HOST_WEB_SERVER_1");
    }
}
