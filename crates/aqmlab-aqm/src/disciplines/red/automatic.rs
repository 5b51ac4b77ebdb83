//! Values of `auto`: thresholds, weight and least `max_p` from the rate of the link (Floyd, Gummadi
//! and Shenker 2001, sections 5 and 6), as computed by ns-2.

use aqmlab_core::{Auto, Limit};

use super::{RedParams, Unit};
use crate::discipline::LinkEnv;

/// The parameters that depend on the link.
#[derive(Clone)]
pub(super) struct RedSettings {
    pub min: f64,
    pub max: f64,
    /// The unit of the thresholds, and so of the average.
    pub in_bytes: bool,
    pub weight: f64,
    pub bottom: f64,
    pub mean_packet: f64,
    /// Mean packets that the link sends in a second.
    pub packets_per_second: f64,
}

/// The least automatic lower threshold, in mean packets.
const LEAST_THRESHOLD: f64 = 5.0;

impl RedSettings {
    pub fn new(params: &RedParams, env: &LinkEnv) -> Self {
        let mean = params.mean_packet.get() as f64;
        let bps = env.rate.as_bps() as f64;
        let packets_per_second = bps / (8.0 * mean);
        let given = |threshold: Auto<Limit>| match threshold {
            Auto::Auto => None,
            Auto::Set(limit) => Some(length(limit, env)),
        };
        let (min, max) = (given(params.min_threshold), given(params.max_threshold));
        let in_bytes = min.or(max).map_or(params.auto_unit == Unit::Bytes, |(_, bytes)| bytes);
        let min = min.map_or_else(
            || {
                let target = params.target_delay.as_secs_f64() * packets_per_second;
                let packets = LEAST_THRESHOLD.max(target / 2.0);
                let length = if in_bytes { packets * mean } else { packets };
                // Not beyond an upper threshold that is given.
                max.map_or(length, |(max, _)| length.min(max / 3.0))
            },
            |(length, _)| length,
        );
        RedSettings {
            min,
            max: max.map_or(3.0 * min, |(length, _)| length),
            in_bytes,
            weight: params.weight.or_else(|| {
                let tenfold = 10.0 * params.auto_rtt.as_secs_f64();
                1.0 - libm::exp(-1.0 / (tenfold * packets_per_second))
            }),
            // 1/W of a flow that has the link to itself, with packets of
            // 1000 bytes and a round-trip time of 100 ms.
            bottom: params.bottom.or_else(|| (80_000.0 / bps).min(0.01)),
            mean_packet: mean,
            packets_per_second,
        }
    }
}

/// A threshold as a number, and whether it is in bytes.
fn length(limit: Limit, env: &LinkEnv) -> (f64, bool) {
    match limit.resolve(env.rate, env.base_rtt) {
        Limit::Packets(packets) => (packets as f64, false),
        Limit::Bytes(bytes) => (bytes.get() as f64, true),
        Limit::Bdp(_) | Limit::Unlimited => unreachable!("`check` refuses these"),
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::{Bytes, Rate, Span};

    use super::*;
    use crate::testing::env;

    fn all_auto() -> RedParams {
        RedParams {
            min_threshold: Auto::Auto,
            max_threshold: Auto::Auto,
            weight: Auto::Auto,
            bottom: Auto::Auto,
            ..RedParams::default()
        }
    }
    fn at(mbit: u64) -> LinkEnv {
        LinkEnv { rate: Rate::from_bps(mbit * 1_000_000), ..env() }
    }

    /// 10 Mbit/s: 2500 packets of 500 bytes a second, 12.5 in 5 ms.
    #[test]
    fn everything_follows_from_the_rate() {
        let settings = RedSettings::new(&all_auto(), &at(10));
        assert_eq!((settings.min, settings.max, settings.in_bytes), (3125.0, 9375.0, true));
        assert!((settings.weight - 3.999_200_106_656e-4).abs() < 1e-15, "{}", settings.weight);
        assert_eq!(settings.bottom, 0.008);
        // A slow link: the least threshold, the largest bottom.
        let settings = RedSettings::new(&all_auto(), &at(1));
        assert_eq!((settings.min, settings.max, settings.bottom), (2500.0, 7500.0, 0.01));
        // 100 ms, and 10 ms: ns-2's weights 0 and -2.
        let params = RedParams { auto_rtt: Span::from_millis(10), ..all_auto() };
        let fast = RedSettings::new(&params, &at(1)).weight;
        assert!((settings.weight - 0.003_992_010_656_008_517).abs() < 1e-15);
        assert!((fast - 0.039_210_560_847_676_82).abs() < 1e-15, "{fast}");
    }

    #[test]
    fn thresholds_take_the_unit_of_one_that_is_given() {
        let settings = |min_threshold, max_threshold, auto_unit| {
            let params = RedParams { min_threshold, max_threshold, auto_unit, ..all_auto() };
            let settings = RedSettings::new(&params, &at(10));
            (settings.min, settings.max, settings.in_bytes)
        };
        let packets = |packets| Auto::Set(Limit::Packets(packets));
        let bytes = |bytes| Auto::Set(Limit::Bytes(Bytes::new(bytes)));
        assert_eq!(settings(Auto::Auto, Auto::Auto, Unit::Packets), (6.25, 18.75, false));
        assert_eq!(settings(packets(7), Auto::Auto, Unit::Bytes), (7.0, 21.0, false));
        assert_eq!(settings(Auto::Auto, bytes(30_000), Unit::Packets), (3125.0, 30_000.0, true));
        assert_eq!(settings(Auto::Auto, packets(40), Unit::Bytes), (6.25, 40.0, false));
        // The automatic one gives way.
        assert_eq!(settings(Auto::Auto, packets(6), Unit::Bytes), (2.0, 6.0, false));
    }
}
