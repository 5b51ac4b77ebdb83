//! Settings that Linux's sender has. A kernel's `stack` refuses all others; `stack = "auto"`
//! uses the RFCs' sender for them.

use aqmlab_core::{Error, ParamType, Params, Result, Span, Value};

use super::control::NAMES;
use super::state::REORDERING;
use crate::congestion::CongestionConfig;
use crate::congestion::cubic::WindowFunction;
use crate::congestion::slow_start::SlowStartKind;
use crate::params::{EcnMode, RetransmissionTimer, Stack, TcpParams, WindowValidation};
use crate::recovery::Recovery;

/// Whether Linux's sender has all that these parameters ask for.
pub(crate) fn is_complete(params: &TcpParams) -> bool {
    lacking_key(params).is_none() && has_control(&params.congestion_control)
}

/// Checks that the kernel of `stack` has all that these parameters ask for.
pub(crate) fn check(params: &TcpParams) -> Result<()> {
    if matches!(params.stack, Stack::Rfc | Stack::Auto) || is_complete(params) {
        return Ok(());
    }
    let hint = "stack = \"auto\" uses the RFCs' sender for what Linux lacks; the results name it";
    Err(first_lack(params, &params.stack.to_text()).hint(hint))
}

/// First key whose value Linux's sender lacks, and the values that it has.
fn lacking_key(params: &TcpParams) -> Option<(&'static str, &'static str)> {
    const { assert!(REORDERING == 3) }; // the RFCs' DupThresh, which is no parameter
    let timer = params.retransmission_timer == RetransmissionTimer::Linux;
    let keys = [
        (
            matches!(params.recovery, Recovery::Rack | Recovery::Sack | Recovery::NewReno),
            ("recovery", "rack, sack or newreno"),
        ),
        (params.prr || params.recovery == Recovery::NewReno, ("prr", "true")),
        (params.ecn != EcnMode::Accurate, ("ecn", "off, classic or dctcp")),
        (
            params.window_validation != WindowValidation::Rfc7661,
            ("window_validation", "rfc2861 or off"),
        ),
        (!params.restart_after_idle, ("restart_after_idle", "false")),
        (timer, ("retransmission_timer", "linux")),
        (params.clock_granularity == Span::from_millis(1), ("clock_granularity", "1ms")),
        (params.max_ack_delay == Span::from_millis(200), ("max_ack_delay", "200ms")),
        (params.limited_transmit, ("limited_transmit", "true")),
        (!params.recovery_end_counts, ("recovery_end_counts", "false")),
    ];
    keys.into_iter().find(|(has, _)| !has).map(|(_, key)| key)
}

/// Whether the kernel has this control with these parameters.
fn has_control(config: &CongestionConfig) -> bool {
    match config {
        CongestionConfig::Cubic(params) => {
            params.variant == WindowFunction::Linux
                && matches!(params.slow_start, SlowStartKind::Hystart | SlowStartKind::Standard)
        }
        other => {
            NAMES.contains(&other.name())
                && CongestionConfig::named(other.name()).as_ref() == Ok(other)
        }
    }
}

fn first_lack(params: &TcpParams, stack: &str) -> Error {
    let expected = |given: &Value, allowed: &str| {
        Error::not_allowed(given, format!("{allowed} with stack = \"{stack}\""))
    };
    if let Some((key, allowed)) = lacking_key(params) {
        let entries = params.entries();
        let (_, given) = entries.iter().find(|(name, _)| *name == key).expect("a parameter");
        return expected(given, allowed).at(key);
    }
    control_lack(&params.congestion_control, expected).at("congestion_control")
}

fn control_lack(config: &CongestionConfig, expected: impl Fn(&Value, &str) -> Error) -> Error {
    if !NAMES.contains(&config.name()) {
        return expected(&config.name().into(), &format!("one of {}", NAMES.join(", ")));
    }
    let of_linux = CongestionConfig::named(config.name()).expect("it has a name");
    let mut pairs = config.settings().into_iter().zip(of_linux.settings());
    let (key, given, allowed) = match config {
        CongestionConfig::Cubic(params) if params.variant != WindowFunction::Linux => {
            ("variant", params.variant.to_value(), "linux".to_string())
        }
        CongestionConfig::Cubic(params) => {
            ("slow_start", params.slow_start.to_value(), "hystart or standard".to_string())
        }
        _ => {
            let differing = pairs.find(|((_, given), (_, value))| given != value);
            let ((key, given), (_, value)) = differing.expect("a parameter of its own");
            (key, given, value.to_string())
        }
    };
    expected(&given, &allowed).at(key)
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Table;

    use super::*;

    fn read(entries: &[(&str, &str)]) -> Result<TcpParams> {
        let table = entries.iter().map(|(key, value)| (key.to_string(), Value::from(*value)));
        let mut params = TcpParams::default();
        params.read(&table.collect::<Table>())?;
        params.check().map(|()| params)
    }

    /// Each is refused by a kernel's stack, with its key and what the kernel has.
    #[test]
    fn a_kernel_refuses_what_it_lacks_and_auto_takes_the_rfcs_sender() {
        for (key, value, expected) in [
            (
                "prr",
                "false",
                "prr: `false`: expected true with stack = \"linux-6.1\" (stack = \"auto\"",
            ),
            ("ecn", "accurate", "ecn: `accurate`: expected off, classic or dctcp with"),
            ("recovery", "tcp-linux", "recovery: `tcp-linux`: expected rack, sack or newreno with"),
            (
                "window_validation",
                "rfc7661",
                "window_validation: `rfc7661`: expected rfc2861 or off",
            ),
            (
                "retransmission_timer",
                "rfc6298",
                "retransmission_timer: `rfc6298`: expected linux with",
            ),
            ("clock_granularity", "10ms", "clock_granularity: `10ms`: expected 1ms with"),
            ("max_ack_delay", "25ms", "max_ack_delay: `25ms`: expected 200ms with"),
            ("limited_transmit", "false", "limited_transmit: `false`: expected true with"),
            ("recovery_end_counts", "true", "recovery_end_counts: `true`: expected false with"),
            (
                "congestion_control",
                "prague",
                "congestion_control: `prague`: expected one of reno, cubic,",
            ),
            (
                "congestion_control",
                "bbr3",
                "congestion_control: `bbr3`: expected one of reno, cubic,",
            ),
        ] {
            let error = read(&[("profile", "linux-6.1"), (key, value)]).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
            let params = read(&[("profile", "linux-6"), (key, value)]).unwrap();
            assert_eq!((params.stack, params.machine()), (Stack::Auto, Stack::Rfc), "{key}");
        }
    }

    #[test]
    fn a_control_is_the_kernels_only_with_the_kernels_parameters() {
        let with = |stack: &str, control: &[(&str, &str)]| {
            let control = control.iter().map(|(key, value)| (key.to_string(), (*value).into()));
            let mut params = read(&[("profile", stack)]).unwrap();
            params.set("congestion_control", &Value::Table(control.collect())).unwrap();
            params.check().map(|()| params)
        };
        for (control, expected) in [
            (
                [("algorithm", "reno"), ("byte_counting", "3")],
                "congestion_control.byte_counting: `3`: expected 1 with",
            ),
            (
                [("algorithm", "cubic"), ("variant", "rfc9438")],
                "congestion_control.variant: `rfc9438`: expected linux with",
            ),
            (
                [("algorithm", "cubic"), ("slow_start", "hystart++")],
                "congestion_control.slow_start: `hystart++`: expected hystart or standard with",
            ),
        ] {
            let error = with("linux-6.12", &control).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
            assert_eq!(with("linux-6", &control).unwrap().machine(), Stack::Rfc);
        }
        let beta = with("linux-6.12", &[("algorithm", "cubic"), ("beta", "0.8")]).unwrap();
        assert_eq!(beta.machine(), Stack::Linux612);
    }

    #[test]
    fn all_of_the_kernels_controls_run_with_every_kernel() {
        for name in NAMES {
            for (stack, machine) in [
                ("auto", Stack::Linux612),
                ("linux-5.4", Stack::Linux54),
                ("linux-6.1", Stack::Linux61),
                ("linux-6.12", Stack::Linux612),
                ("rfc", Stack::Rfc),
            ] {
                let keys = [("profile", "linux-6"), ("congestion_control", name), ("stack", stack)];
                assert_eq!(read(&keys).unwrap().machine(), machine, "{name}");
                crate::Sender::new(&read(&keys).unwrap(), None, 0);
            }
        }
    }
}
