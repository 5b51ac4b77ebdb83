//! Profiles: settings that together model one implementation.
//!
//! A profile lists the parameters that differ from the defaults, which are Linux's, as data:
//! `profile = "rfc"` in a transport table begins from the defaults, takes the list, and then the
//! other keys of the table. Settings of a control hold whenever the table names that control.

use aqmlab_core::{Kind, Lookup, Params, Result, Table, Value};

use crate::congestion::control::{CongestionConfig, ControlParams};
use crate::params::{Profile, TcpParams};

/// Keys of the transport, or `CONTROL.KEY` for those of a control, and values.
type Settings = &'static [(&'static str, &'static str)];

const RFC: Settings = &[
    ("stack", "rfc"),
    ("mss", "1460b"),
    ("header", "40b"),
    ("recovery", "sack"),
    ("prr", "false"),
    ("frto", "false"),
    ("dsack", "false"),
    ("timestamps", "false"),
    ("min_rto", "1s"),
    ("max_rto", "60s"),
    ("retransmission_timer", "rfc6298"),
    ("ack_delay", "200ms"),
    ("quick_acks", "0"),
    ("window_validation", "off"),
    ("congestion_control", "reno"),
    ("cubic.slow_start", "hystart++"),
    ("cubic.variant", "rfc9438"),
];

const NS2_SACK1: Settings = &[
    ("recovery", "sack1"),
    ("initial_window", "3p"),
    ("initial_rto", "3s"),
    ("min_rto", "200ms"),
    ("clock_granularity", "10ms"),
    ("ack_delay", "100ms"),
    ("reno.byte_counting", "none"),
    ("reno.least_window", "1"),
];

const RFC_NEWRENO: Settings = &[("recovery", "newreno"), ("initial_window", "4380b")];

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
    /// Differences from the defaults: later ones win.
    fn settings(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let lists: [Settings; 2] = match self {
            Profile::Rfc => [RFC, &[]],
            Profile::Ns2Sack1 => [RFC, NS2_SACK1],
            Profile::RfcNewReno => [RFC, RFC_NEWRENO],
            Profile::Linux6 => [&[], &[]],
            Profile::Linux612 => [&[("stack", "linux-6.12")], &[]],
            Profile::Linux61 => [&[("stack", "linux-6.1")], &[]],
            Profile::Windows => [RFC, WINDOWS],
            Profile::LinuxL4s => [L4S, &[]],
        };
        lists.into_iter().flatten().copied()
    }

    /// The control `name` with the settings of the profile.
    ///
    /// # Errors
    /// Returns an error if there is no such control.
    pub(crate) fn control(self, name: &str) -> Result<CongestionConfig> {
        let mut control = CongestionConfig::named(name)?;
        for (key, value) in self.settings() {
            match key.split_once('.') {
                Some((of, key)) if of == name => control.set(key, &value.into())?,
                _ => {}
            }
        }
        Ok(control)
    }
}

impl TcpParams {
    /// The parameters of a profile.
    ///
    /// # Errors
    /// Never, as the test of all profiles shows.
    pub fn of_profile(profile: Profile) -> Result<Self> {
        let mut params = TcpParams { profile, ..TcpParams::default() };
        for (key, value) in profile.settings().filter(|(key, _)| !key.contains('.')) {
            match key {
                "congestion_control" => params.congestion_control = profile.control(value)?,
                _ => params.set(key, &value.into())?,
            }
        }
        Ok(params)
    }

    /// The RFCs' sender and settings: `profile = "rfc"`.
    pub fn rfc() -> Self {
        Self::of_profile(Profile::Rfc).expect("the settings of a profile are valid")
    }

    /// Reads a transport table: its profile, if it names one, replaces all parameters; its other
    /// keys follow.
    ///
    /// # Errors
    /// Returns an error if a key or a value is not allowed.
    pub fn read(&mut self, table: &Table) -> Result<()> {
        self.read_with(table, &())
    }

    /// Reads a transport table whose congestion control may be one of `more`.
    ///
    /// # Errors
    /// Returns an error as [`TcpParams::read`] does.
    pub fn read_with(&mut self, table: &Table, more: &dyn Lookup<dyn ControlParams>) -> Result<()> {
        if let Some(value) = table.get("profile") {
            let mut named = TcpParams::default();
            named.set("profile", value)?;
            *self = Self::of_profile(named.profile)?;
        }
        table.iter().try_for_each(|(key, value)| {
            if key != "congestion_control" {
                return self.set(key, value);
            }
            let before = self.control_before(value);
            let control = before.updated_with(value, more);
            self.congestion_control = control.map_err(|error| error.at(key))?;
            Ok(())
        })
    }

    /// The control that `value` changes: the present one, or the profile's of the name in `value`.
    fn control_before(&self, value: &Value) -> CongestionConfig {
        let name = match value {
            Value::Table(table) => table.get(<dyn ControlParams>::KEY),
            name => Some(name),
        };
        let other = name
            .and_then(|name| name.as_text().ok())
            .filter(|name| *name != self.congestion_control.name())
            .and_then(|name| self.profile.control(name).ok());
        other.unwrap_or_else(|| self.congestion_control.clone())
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::{Limit, ParamType, Span};

    use super::*;
    use crate::congestion::cubic::{CubicParams, WindowFunction};
    use crate::params::Recovery;
    use crate::params::{EcnMode, Stack};

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
                TcpParams { profile: Profile::Linux6, ..params }
            })
            .collect();
        let place = Profile::choices().iter().position(|name| *name == "linux-6").unwrap();
        assert_eq!(all[place], TcpParams::default(), "the default");
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
        assert_ne!(named.congestion_control, TcpParams::default().congestion_control, "RFC 9438");
        named.read(&table(&[("congestion_control", "reno")])).unwrap();
        assert_eq!(named, ns2);
    }

    #[test]
    fn cubic_is_the_stacks_after_another_control_and_the_rfcs_with_their_profile() {
        for (profile, variant) in [
            ("linux-6", WindowFunction::Auto),
            ("linux-l4s", WindowFunction::Auto),
            ("rfc", WindowFunction::Rfc9438),
            ("windows", WindowFunction::Rfc9438),
        ] {
            let mut params = TcpParams::default();
            for control in ["reno", "cubic"] {
                let keys = [("profile", profile), ("congestion_control", control)];
                let keys = if control == "reno" { &keys[..] } else { &keys[1..] };
                params.read(&table(keys)).unwrap();
            }
            let cubic = params.congestion_control.downcast_ref::<CubicParams>().unwrap();
            assert_eq!(cubic.variant, variant, "{profile}");
        }
    }

    /// The full text form reads back as the same value.
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
