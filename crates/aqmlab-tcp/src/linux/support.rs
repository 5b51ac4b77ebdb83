//! Choice of the state machine: settings that Linux's sender lacks, and settings that the RFCs'
//! lacks. A kernel's `stack` refuses the former; `stack = "auto"` uses the RFCs' sender for them.

use aqmlab_core::{Error, ParamType, Params, Result, Span, Value};

use super::state::REORDERING;
use crate::congestion::cubic::{CubicParams, WindowFunction};
use crate::params::Recovery;
use crate::params::{EcnMode, RetransmissionTimer, Stack, TcpParams, WindowValidation};

/// A key and the values that a sender has.
type Lack = (&'static str, &'static str);

impl TcpParams {
    /// Checks the parameters against each other.
    ///
    /// # Errors
    /// Returns an error if they contradict each other, or if the sender of `stack` lacks one.
    pub fn check(&self) -> Result<()> {
        self.check_together()?;
        check(self)
    }

    /// Checks that an open connection can change to other parameters: the state machine stays, and
    /// accurate ECN, which is another form of acknowledgement, neither begins nor ends.
    ///
    /// # Errors
    /// Returns an error if it cannot.
    pub fn check_change(&self, to: &TcpParams) -> Result<()> {
        to.check()?;
        if to.machine() != self.machine() {
            let problem = "this needs another state machine, which a connection keeps";
            return Err(Error::new(problem).hint("set `stack` from the start: \"rfc\" has all"));
        }
        if (self.ecn == EcnMode::Accurate) != (to.ecn == EcnMode::Accurate) {
            let problem = "accurate ECN can neither begin nor end in a connection";
            return Err(Error::new(problem).at("ecn"));
        }
        Ok(())
    }

    /// State machine of a sender with these parameters: never `Auto`.
    ///
    /// # Panics
    /// Panics if `stack` is a kernel's and lacks a setting, which [`TcpParams::check`] reports.
    pub fn machine(&self) -> Stack {
        match self.stack {
            Stack::Rfc => Stack::Rfc,
            stack if lacking_key(self).is_none() => stack.or_newest(),
            Stack::Auto => Stack::Rfc,
            stack => panic!("{} lacks some of these parameters: check them", stack.to_text()),
        }
    }
}

/// Checks that the sender of `stack` has all that these parameters ask for.
fn check(params: &TcpParams) -> Result<()> {
    let lacking = lacking_key(params);
    match (params.stack, lacking) {
        (Stack::Rfc, _) => check_rfc(params, "stack = \"rfc\""),
        (Stack::Auto, Some((key, _))) => check_rfc(params, &given(params, key)),
        (_, None) => check_kernels_cubic(params),
        (stack, Some((key, allowed))) => {
            let hint = "stack = \"auto\" uses the RFCs' sender for it; the results name the sender";
            let allowed = format!("{allowed} with stack = \"{}\"", stack.to_text());
            Err(Error::not_allowed(value(params, key), allowed).at(key).hint(hint))
        }
    }
}

fn value(params: &TcpParams, key: &str) -> Value {
    let entries = params.entries().into_iter();
    entries.into_iter().find(|(name, _)| *name == key).expect("a parameter").1
}
fn given(params: &TcpParams, key: &str) -> String {
    format!("{key} = {}", value(params, key))
}

/// First key whose value Linux's sender lacks.
fn lacking_key(params: &TcpParams) -> Option<Lack> {
    const { assert!(REORDERING == 3) }; // the RFCs' DupThresh, which is no parameter
    let timer = matches!(
        params.retransmission_timer,
        RetransmissionTimer::Auto | RetransmissionTimer::Linux
    );
    let keys = [
        (
            matches!(params.recovery, Recovery::Rack | Recovery::Sack | Recovery::NewReno),
            ("recovery", "rack, sack or newreno"),
        ),
        (params.prr || params.recovery == Recovery::NewReno, ("prr", "true")),
        (
            params.window_validation != WindowValidation::Rfc7661,
            ("window_validation", "rfc2861 or off"),
        ),
        (!params.restart_after_idle, ("restart_after_idle", "false")),
        (timer, ("retransmission_timer", "auto or linux")),
        (params.clock_granularity == Span::from_millis(1), ("clock_granularity", "1ms")),
        (params.max_ack_delay == Span::from_millis(200), ("max_ack_delay", "200ms")),
        (params.limited_transmit, ("limited_transmit", "true")),
        (!params.recovery_end_counts, ("recovery_end_counts", "false")),
    ];
    keys.into_iter().find(|(has, _)| !has).map(|(_, key)| key)
}

/// Refuses what only a kernel has. `cause` is the setting that needs the RFCs' sender.
fn check_rfc(params: &TcpParams, cause: &str) -> Result<()> {
    let refuse = |value: &str, allowed: &str| {
        let allowed = format!("{allowed} with the RFCs' sender, which {cause} needs");
        let hint = "stack = \"linux-6.12\" has the kernel's";
        Err(Error::not_allowed(value, allowed).hint(hint))
    };
    if params.retransmission_timer == RetransmissionTimer::Linux {
        return refuse("linux", "auto, rfc6298 or ns-2")
            .map_err(|error| error.at("retransmission_timer"));
    }
    match params.congestion_control.downcast_ref::<CubicParams>() {
        Some(cubic) if cubic.variant == WindowFunction::Linux => {
            refuse("linux", "auto, rfc9438 or ns3")
                .map_err(|error| error.at("variant").at("congestion_control"))
        }
        _ => Ok(()),
    }
}

/// The kernel's CUBIC has two exits of slow start and one reduction.
fn check_kernels_cubic(params: &TcpParams) -> Result<()> {
    match params.congestion_control.downcast_ref::<CubicParams>() {
        Some(cubic) if cubic.variant == WindowFunction::Linux && !cubic.is_the_kernels() => {
            let allowed = "hystart or standard with variant = linux; rfc9438 has the others";
            let error = Error::not_allowed(cubic.slow_start.to_value(), allowed);
            Err(error.at("slow_start").at("congestion_control"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Table;

    use super::super::control::LinuxControl;
    use super::*;

    fn read(entries: &[(&str, &str)]) -> Result<TcpParams> {
        let table = entries.iter().map(|(key, value)| (key.to_string(), Value::from(*value)));
        let mut params = TcpParams::default();
        params.read(&table.collect::<Table>())?;
        params.check().map(|()| params)
    }

    /// Each is refused by a kernel's stack, with its key and the kernel's values.
    #[test]
    fn a_kernel_refuses_what_it_lacks_and_auto_takes_the_rfcs_sender() {
        for (key, value, allowed) in [
            ("prr", "false", "true"),
            ("recovery", "tcp-linux", "rack, sack or newreno"),
            ("window_validation", "rfc7661", "rfc2861 or off"),
            ("retransmission_timer", "rfc6298", "auto or linux"),
            ("clock_granularity", "10ms", "1ms"),
            ("max_ack_delay", "25ms", "200ms"),
            ("limited_transmit", "false", "true"),
            ("recovery_end_counts", "true", "false"),
        ] {
            let error = read(&[("profile", "linux-6.1"), (key, value)]).unwrap_err().to_string();
            let expected = format!(
                "{key}: `{value}`: expected {allowed} with stack = \"linux-6.1\" (stack = \"auto\""
            );
            assert!(error.starts_with(&expected), "{error}");
            let params = read(&[("profile", "linux-6"), (key, value)]).unwrap();
            assert_eq!((params.stack, params.machine()), (Stack::Auto, Stack::Rfc), "{key}");
        }
    }

    /// The error names the setting that needs the RFCs' sender, and what to write instead.
    #[test]
    fn the_rfcs_sender_refuses_what_only_a_kernel_has() {
        let timer = ("retransmission_timer", "linux");
        for (keys, cause) in [
            ([("profile", "rfc"), timer], "stack = \"rfc\""),
            ([("prr", "false"), timer], "prr = false"),
        ] {
            let error = read(&keys).unwrap_err().to_string();
            let expected = format!(
                "retransmission_timer: `linux`: expected auto, rfc6298 or ns-2 with the RFCs' \
                 sender, which {cause} needs (stack = \"linux-6.12\" has the kernel's)"
            );
            assert_eq!(error, expected);
        }
        let error = with_control("rfc", &[("algorithm", "cubic"), ("variant", "linux")]);
        let error = error.unwrap_err().to_string();
        let expected = "congestion_control.variant: `linux`: expected auto, rfc9438 or ns3 with";
        assert!(error.starts_with(expected), "{error}");
    }

    fn with_control(profile: &str, control: &[(&str, &str)]) -> Result<TcpParams> {
        let control = control.iter().map(|(key, value)| (key.to_string(), (*value).into()));
        let mut params = read(&[("profile", profile)])?;
        params.set("congestion_control", &Value::Table(control.collect()))?;
        params.check().map(|()| params)
    }

    /// The kernel's code runs only with the kernel's parameters; every other control runs on its
    /// interface.
    #[test]
    fn every_control_runs_with_linuxs_sender() {
        for (control, is_the_kernels) in [
            (&[("algorithm", "reno")][..], true),
            (&[("algorithm", "reno"), ("byte_counting", "3")], false),
            (&[("algorithm", "cubic"), ("beta", "0.8")], true),
            (&[("algorithm", "cubic"), ("variant", "linux"), ("slow_start", "standard")], true),
            (&[("algorithm", "cubic"), ("variant", "rfc9438")], false),
            (&[("algorithm", "cubic"), ("slow_start", "hystart++")], false),
            (&[("algorithm", "prague")], false),
            (&[("algorithm", "bbr3")], false),
        ] {
            for profile in ["linux-6", "linux-6.12"] {
                let params = with_control(profile, control).unwrap();
                assert_eq!(params.machine(), Stack::Linux612, "{control:?}");
                let control = LinuxControl::new(&params, &params.first_setup(0));
                assert_eq!(
                    !matches!(control, LinuxControl::External(_)),
                    is_the_kernels,
                    "{control:?}"
                );
            }
        }
        let both = [("algorithm", "cubic"), ("variant", "linux"), ("slow_start", "hystart++")];
        let error = with_control("linux-6", &both).unwrap_err().to_string();
        let expected = "congestion_control.slow_start: `hystart++`: expected hystart or standard";
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn all_controls_run_with_every_stack() {
        for entry in crate::congestion::entries() {
            for (stack, machine) in [
                ("auto", Stack::Linux612),
                ("linux-5.4", Stack::Linux54),
                ("linux-6.1", Stack::Linux61),
                ("linux-6.12", Stack::Linux612),
                ("rfc", Stack::Rfc),
            ] {
                for ecn in ["off", "accurate"] {
                    let keys = [("congestion_control", entry.name), ("stack", stack), ("ecn", ecn)];
                    assert_eq!(read(&keys).unwrap().machine(), machine, "{}", entry.name);
                    crate::Sender::new(&read(&keys).unwrap(), None, 0);
                }
            }
        }
    }
}
