//! Profiles: settings that together are like one thing that is run.
//!
//! A profile is a list of parameters that differ from the defaults, as data:
//! `profile = "linux-6"` in a transport table begins from the defaults, takes
//! the list, and then what else stands in the table.

use aqmlab_core::{Lookup, Nothing, Params, Result, Table, Value, choices};

use crate::congestion::CustomControl;
use crate::params::TcpParams;

choices! {
    /// What is modelled.
    pub enum Profile {
        /// The RFCs: the defaults of all parameters.
        Rfc = "rfc",
        /// ns-2's Sack1 with a delaying SACK sink.
        Ns2Sack1 = "ns2-sack1",
        /// NewReno as RFC 5681, RFC 6582 and RFC 3390 have it.
        RfcNewReno = "rfc-newreno",
        /// Linux 6 with its default settings: 6.12, and the RFCs' sender for what that lacks.
        Linux6 = "linux-6",
        /// Linux 6.12 with its default settings, and nothing that it lacks.
        Linux612 = "linux-6.12",
        /// Linux 6.1 with its default settings, and nothing that it lacks.
        Linux61 = "linux-6.1",
        /// Windows 10 and Server 2019 with the template Internet.
        Windows = "windows",
        /// Linux 6 with accurate ECN and ECT(1).
        LinuxL4s = "linux-l4s",
    }
}

type Settings = &'static [(&'static str, &'static str)];

const NS2_SACK1: Settings = &[
    ("recovery", "sack1"),
    ("initial_window", "3p"),
    ("initial_rto", "3s"),
    ("min_rto", "200ms"),
    ("clock_granularity", "10ms"),
    ("ack_delay", "100ms"),
    ("congestion_control.byte_counting", "none"),
    ("congestion_control.least_window", "1"),
];

const RFC_NEWRENO: Settings = &[("recovery", "newreno"), ("initial_window", "4380b")];

// net/ipv4 of Linux 6 and its sysctls' defaults. Timestamps take 12 bytes of each segment.
const LINUX_6: Settings = &[
    ("stack", "auto"),
    ("mss", "1448b"),
    ("header", "52b"),
    ("recovery", "rack"),
    ("prr", "true"),
    ("frto", "true"),
    ("dsack", "true"),
    ("timestamps", "true"),
    ("min_rto", "200ms"),
    ("max_rto", "120s"),
    ("retransmission_timer", "linux"),
    ("ack_delay", "40ms"),
    ("quick_acks", "16"),
    ("window_validation", "rfc2861"),
    ("congestion_control", "cubic"),
    ("congestion_control.slow_start", "hystart"),
    ("congestion_control.variant", "linux"),
];

// Get-NetTCPSetting's template Internet: MinRto 300 ms, DelayedAckTimeout 40 ms,
// CwndRestart false, Timestamps disabled.
const WINDOWS: Settings = &[
    ("recovery", "rack"),
    ("min_rto", "300ms"),
    ("ack_delay", "40ms"),
    ("congestion_control", "cubic"),
];

const L4S: Settings =
    &[("ecn", "accurate"), ("ecn_codepoint", "ect1"), ("congestion_control", "prague")];

impl Profile {
    /// What differs from the defaults: later ones win.
    fn settings(self) -> [Settings; 2] {
        match self {
            Profile::Rfc => [&[], &[]],
            Profile::Ns2Sack1 => [NS2_SACK1, &[]],
            Profile::RfcNewReno => [RFC_NEWRENO, &[]],
            Profile::Linux6 => [LINUX_6, &[]],
            Profile::Linux612 => [LINUX_6, &[("stack", "linux-6.12")]],
            Profile::Linux61 => [LINUX_6, &[("stack", "linux-6.1")]],
            Profile::Windows => [WINDOWS, &[]],
            Profile::LinuxL4s => [LINUX_6, L4S],
        }
    }
}

/// A table with one entry.
fn one(key: &str, value: &str) -> Table {
    let mut table = Table::new();
    table.insert(key, value.into());
    table
}

impl TcpParams {
    /// The parameters of a profile.
    ///
    /// # Errors
    /// Never, as the test of all profiles shows.
    pub fn of_profile(profile: Profile) -> Result<Self> {
        let mut params = TcpParams { profile, ..TcpParams::default() };
        for (key, value) in profile.settings().into_iter().flatten() {
            match key.split_once('.') {
                Some((key, inner)) => params.set(key, &Value::Table(one(inner, value)))?,
                None => params.set(key, &Value::from(*value))?,
            }
        }
        Ok(params)
    }

    /// Takes what stands in a transport table: its profile, if it names one,
    /// in the place of all that was set before, and then its other keys.
    ///
    /// # Errors
    /// If a key or a value is not allowed.
    pub fn read(&mut self, table: &Table) -> Result<()> {
        self.read_with(table, &Nothing)
    }

    /// The same; the congestion control may also be one that `more` knows.
    ///
    /// # Errors
    /// As [`TcpParams::read`].
    pub fn read_with(&mut self, table: &Table, more: &dyn Lookup<dyn CustomControl>) -> Result<()> {
        if let Some(value) = table.get("profile") {
            let mut named = TcpParams::default();
            named.set("profile", value)?;
            *self = Self::of_profile(named.profile)?;
        }
        table.iter().try_for_each(|(key, value)| {
            if key != "congestion_control" {
                return self.set(key, value);
            }
            let control = self.congestion_control.updated_with(value, more);
            self.congestion_control = control.map_err(|error| error.at(key))?;
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::{Limit, ParamType, Span};

    use super::*;
    use crate::params::{EcnMode, Stack};
    use crate::recovery::Recovery;

    fn table(entries: &[(&str, &str)]) -> Table {
        let mut table = Table::new();
        for (key, value) in entries {
            table.insert(*key, Value::from(*value));
        }
        table
    }

    #[test]
    fn every_profile_can_be_had_and_differs_from_the_others() {
        let all: Vec<TcpParams> = Profile::choices()
            .iter()
            .map(|name| {
                let mut params = TcpParams::default();
                params.read(&table(&[("profile", name)])).unwrap();
                params.check().unwrap();
                TcpParams { profile: Profile::Rfc, ..params }
            })
            .collect();
        assert_eq!(all[0], TcpParams::default());
        for (i, one) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|other| other != one));
        }
    }

    #[test]
    fn the_older_kernel_differs_from_the_newer_by_its_stack_alone() {
        let older = TcpParams::of_profile(Profile::Linux61).unwrap();
        let newer = TcpParams::of_profile(Profile::Linux612).unwrap();
        assert_eq!((older.stack, newer.stack), (Stack::Linux61, Stack::Linux612));
        let params = TcpParams { profile: newer.profile, stack: newer.stack, ..older };
        assert_eq!(params, newer);
    }

    #[test]
    fn explicit_keys_win_whatever_their_order_and_a_profile_begins_anew() {
        let mut params = TcpParams::default();
        params
            .read(&table(&[("min_rto", "1s"), ("profile", "linux-6"), ("ecn", "classic")]))
            .unwrap();
        assert_eq!((params.min_rto, params.ecn), (Span::from_secs(1), EcnMode::Classic));
        assert_eq!((params.recovery, params.prr), (Recovery::Rack, true));
        params.read(&table(&[("profile", "rfc-newreno"), ("initial_window", "2p")])).unwrap();
        assert_eq!((params.recovery, params.prr), (Recovery::NewReno, false));
        assert_eq!((params.initial_window, params.ecn), (Limit::Packets(2), EcnMode::Off));
    }

    #[test]
    fn naming_the_control_of_a_profile_keeps_its_settings() {
        let ns2 = TcpParams::of_profile(Profile::Ns2Sack1).unwrap();
        let mut named = ns2.clone();
        named.read(&table(&[("congestion_control", "reno")])).unwrap();
        assert_eq!(named, ns2);
        named.read(&table(&[("congestion_control", "cubic")])).unwrap();
        named.read(&table(&[("congestion_control", "reno")])).unwrap();
        assert_eq!(named.congestion_control, TcpParams::default().congestion_control);
        assert_ne!(named.congestion_control, ns2.congestion_control);
    }

    /// What is written out in full reads back as the same.
    #[test]
    fn the_text_of_a_profile_reads_back() {
        let params = TcpParams::of_profile(Profile::LinuxL4s).unwrap();
        let entries = params.entries().into_iter();
        let written: Table = entries.map(|(key, value)| (key.to_string(), value)).collect();
        let mut again = TcpParams::default();
        again.read(&written).unwrap();
        assert_eq!(again, params);
    }
}
