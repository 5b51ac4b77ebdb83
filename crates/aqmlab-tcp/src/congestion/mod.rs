//! Congestion controls: the catalogue, one file per control. [`control`] documents their interface.

mod bbr_parts;
#[macro_use]
pub mod control;
mod custom;
mod delay;
pub(crate) mod sample;
pub(crate) mod slow_start;
mod window;

use aqmlab_core::{Entry, Rate, Span, Time, catalogue};

pub use self::control::{
    AckSample, CloneParams, Congestion, CongestionConfig, CongestionControl, CongestionEvent,
    ControlParams, Controls, ExternalControl, LostSegment, RateSample, Samples, SentSample, Setup,
};

macro_rules! controls {
    ($($Control:ident($module:ident::$Params:ident $(, $cycle:ident)?)),+ $(,)?) => {
        catalogue! {
            dyn ControlParams;
            what "congestion control", key "algorithm", example "cubic", default "cubic";
            presets &[], elsewhere (|_| None);
            $( $module::$Params, )+
        }

        /// The state of one of them: dispatched without a pointer, as it is
        /// called for each acknowledgement.
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant)] // there is one of them in each sender
        pub(crate) enum Control {
            $( $Control($module::$Control), )+
            Custom(custom::CustomState),
        }

        $( impl ControlParams for $module::$Params {
            fn build(&self, setup: &Setup) -> Box<dyn ExternalControl> {
                Box::new($module::$Control::new(self, setup))
            }
            $( fn cycle(&self, window: f64, rtt: f64, acknowledged: u64) -> Option<f64> {
                Some(self.$cycle(window, rtt, acknowledged))
            } )?
        } )+

        impl Control {
            pub fn new(config: &CongestionConfig, setup: &Setup) -> Self {
                $( if let Some(params) = config.downcast_ref::<$module::$Params>() {
                    return Control::$Control($module::$Control::new(params, setup));
                } )+
                Control::Custom(custom::CustomState::new(config.build(setup)))
            }
            /// Gives a steered control another window and rate; false for all others.
            pub fn steer(&mut self, config: &CongestionConfig, mss: u64) -> bool {
                match (self, config.downcast_ref::<steered::SteeredParams>()) {
                    (Control::Steered(state), Some(params)) => {
                        state.steer(params, mss);
                        true
                    }
                    _ => false,
                }
            }
            /// Recorded acknowledgements of a steered control; `None` for all others.
            pub fn samples(&mut self) -> Option<&mut Samples> {
                match self {
                    Control::Steered(state) => Some(&mut state.samples),
                    _ => None,
                }
            }
            /// True if its state can be copied: a custom control may refuse.
            pub fn is_cloneable(&self) -> bool {
                !matches!(self, Control::Custom(state) if !state.is_cloneable())
            }
        }

        /// Calls a method of the one there is.
        macro_rules! each {
            ($self:ident, $state:ident => $call:expr) => {
                match $self {
                    $( Control::$Control($state) => $call, )+
                    Control::Custom($state) => $call,
                }
            };
        }
    };
}

// One line a congestion control; with the method of its parameters for [`ControlParams::cycle`].
controls! {
    Reno(reno::RenoParams, cycle),
    Cubic(cubic::CubicParams, cycle),
    Vegas(vegas::VegasParams),
    Westwood(westwood::WestwoodParams),
    Compound(compound::CompoundParams),
    Ledbat(ledbat::LedbatParams),
    LedbatPp(ledbat_pp::LedbatPpParams),
    Scalable(scalable::ScalableParams, cycle),
    HighSpeed(highspeed::HighSpeedParams),
    Dctcp(dctcp::DctcpParams),
    Prague(prague::PragueParams),
    Bbr(bbr::BbrParams),
    Bbr3(bbr3::Bbr3Params),
    Relentless(relentless::RelentlessParams),
    Cbr(cbr::CbrParams),
    Steered(steered::SteeredParams),
}

pass_control!(Control, each);

impl Control {
    /// True if it does not pace, and segments sent while others are in flight do not change its
    /// window: the sender then asks once for several segments.
    pub fn sends_bursts(&self) -> bool {
        use Control::{Bbr, Bbr3, Cbr, Custom, Prague, Steered};
        !matches!(self, Prague(_) | Bbr(_) | Bbr3(_) | Cbr(_) | Steered(_) | Custom(_))
    }
}

/// All congestion controls.
pub fn entries() -> Vec<Entry> {
    CongestionConfig::entries()
}

#[cfg(test)]
mod tests {
    use aqmlab_core::{Params, Result, Value};

    use super::*;
    use crate::TcpParams;
    use crate::testing::{ack, transport};

    /// RFC 5681, section 4.1. BBR and Prague pace data after an idle time and have rules of their
    /// own (Linux exempts all with `cong_control`); a constant rate has none. A steered window grows
    /// only when it is told to.
    #[test]
    fn windows_restart_after_idle_times() {
        let others = ["bbr", "bbr3", "prague", "cbr"];
        for entry in entries().into_iter().filter(|entry| entry.name != "steered") {
            let config = CongestionConfig::named(entry.name).unwrap();
            let mut control = Control::new(&config, &transport().setup(10_000, 0));
            for _ in 0..30 {
                let rtt = Some(Span::from_millis(100));
                control.on_ack(&AckSample { rtt, smoothed_rtt: rtt, min_rtt: rtt, ..ack(1000) });
            }
            let window = control.window();
            control.on_idle(10_000);
            let restarts = control.window() == 10_000;
            assert_eq!(restarts, !others.contains(&entry.name), "{}: {window}", entry.name);
            control.on_idle(20_000);
            assert!(!restarts || control.window() == 10_000, "{}: it shrinks only", entry.name);
            control.set_ssthresh(30_000);
            assert!(!restarts || control.ssthresh() == 30_000, "{}", entry.name);
        }
    }

    /// RFC 5681, section 3.1; RFC 3168, section 6.1.2. Relentless grows in recoveries, Prague with
    /// marks, and BBR has rules of its own.
    #[test]
    fn windows_grow_neither_in_recovery_nor_with_an_echo_nor_by_sack_alone() {
        let others = ["bbr", "bbr3", "prague", "relentless"];
        for entry in entries().into_iter().filter(|entry| !others.contains(&entry.name)) {
            let config = CongestionConfig::named(entry.name).unwrap();
            let mut control = Control::new(&config, &transport().setup(10_000, 0));
            let rtt = Some(Span::from_millis(100));
            let data = AckSample { rtt, prior_in_flight: 10_000, ..ack(1000) };
            for sample in [
                AckSample { in_recovery: true, ..data },
                AckSample { ece: true, ..data },
                AckSample { acked: 0, sacked: 1000, ..data },
            ] {
                let before = control.window();
                control.on_ack(&sample);
                assert_eq!(control.window(), before, "{}: {sample:?}", entry.name);
            }
            let before = control.window();
            control.on_ack(&data);
            let grows = ["reno", "cubic"].contains(&entry.name);
            assert!(control.window() > before || !grows, "{}", entry.name);
        }
    }

    fn set(value: Value) -> Result<TcpParams> {
        let mut params = TcpParams::rfc();
        params.set("congestion_control", &value).map(|()| params)
    }

    fn table(pairs: &[(&str, &str)]) -> Value {
        Value::Table(pairs.iter().map(|(key, text)| (key.to_string(), (*text).into())).collect())
    }

    #[test]
    fn every_control_reads_back_and_is_valid() {
        for entry in entries() {
            let config = CongestionConfig::named(entry.name).unwrap();
            config.check().unwrap();
            assert_eq!(set(Value::Table(config.to_table())).unwrap().congestion_control, config);
            assert_eq!(set(entry.name.into()).unwrap().congestion_control, config);
        }
    }

    #[test]
    fn a_table_without_a_name_changes_what_is_there() {
        let mut params = set(table(&[("algorithm", "reno"), ("beta_ecn", "0.8")])).unwrap();
        let with_abe = params.congestion_control.clone();
        assert_ne!(with_abe, TcpParams::rfc().congestion_control);
        params.set("congestion_control", &table(&[])).unwrap();
        assert_eq!(params.congestion_control, with_abe);
        params.set("congestion_control", &table(&[("beta_ecn", "none")])).unwrap();
        assert_eq!(params.congestion_control, TcpParams::rfc().congestion_control);
    }

    #[test]
    fn what_is_wrong_is_said_at_its_key() {
        for (value, expected) in [
            ("rneo".into(), "congestion_control: `rneo`: unknown congestion control"),
            (Value::Integer(3), "congestion_control: `3`: expected the name"),
            (table(&[("algorithm", "x")]), "congestion_control.algorithm: `x`: unknown"),
            (table(&[("beta_enc", "0.8")]), "congestion_control.beta_enc: unknown key"),
            (table(&[("beta_ecn", "2")]), "congestion_control.beta_ecn: `2`: expected"),
        ] {
            let error = set(value).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
