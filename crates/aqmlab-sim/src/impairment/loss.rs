//! Packet loss and duplication.

use aqmlab_core::{Error, ParamType, Params, Result, Span, Stream, Time, Value, params};

use super::{Draws, MAX_CORRELATION};
use crate::rate::table_of;

params! {
    /// Random events with the same probability for each packet.
    pub struct ChanceParams {
        /// Probability for each packet.
        chance: f64 = 0.0, in 0.0 => 1.0, source "tc-netem(8), loss random and duplicate";
        /// Probability that a packet has the outcome of the one before it.
        correlation: f64 = 0.0, in 0.0 => MAX_CORRELATION,
            source "tc-netem(8), loss random and duplicate";
    }
}

/// Probability as a number, or as text in per cent.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Chance(pub f64);

impl ParamType for Chance {
    const KIND: &'static str = "chance";
    fn allowed() -> String {
        "a probability from 0 to 1 or in %, such as 0.01 or 1%, or a table with `chance`; for losses \
         also one with `p` (Gilbert-Elliott), `packets` or `on`"
            .into()
    }
    fn read(value: &Value) -> Option<Self> {
        let percent = match value {
            Value::Text(text) => text.trim().strip_suffix('%'),
            _ => None,
        };
        let chance = match percent {
            Some(number) => number.trim().parse::<f64>().ok().map(|number| number / 100.0),
            None => f64::read(value),
        };
        chance.filter(|chance| (0.0..=1.0).contains(chance)).map(Chance)
    }
    fn to_text(&self) -> String {
        self.0.to_text()
    }
}

impl ChanceParams {
    /// Reads a probability, or a table.
    pub(crate) fn read(value: &Value) -> Result<Self> {
        if let Value::Table(table) = value {
            return ChanceParams::from_table(table);
        }
        let Chance(chance) = Chance::parse(value)?;
        Ok(ChanceParams { chance, ..ChanceParams::default() })
    }

    /// Returns a value that reads back as the same.
    pub(crate) fn to_value(&self) -> Value {
        match self.correlation > 0.0 {
            true => table_of(self.entries()),
            false => self.chance.to_text().into(),
        }
    }
}

params! {
    /// Losses in bursts: the Gilbert-Elliott model.
    pub struct GilbertElliottParams {
        /// Probability of a transition from the good to the bad state, at each packet.
        p: f64 = 0.0, in 0.0 => 1.0, source "tc-netem(8), gemodel p";
        /// Probability of a transition back; `none`: 1 - p.
        r: Option<f64> = None, in Some(0.0) => Some(1.0), source "tc-netem(8), gemodel r";
        /// Probability of a loss in the bad state: netem's 1-h.
        bad: f64 = 1.0, in 0.0 => 1.0, source "tc-netem(8), gemodel 1-h";
        /// Probability of a loss in the good state: netem's 1-k.
        good: f64 = 0.0, in 0.0 => 1.0, source "tc-netem(8), gemodel 1-k";
    }
}

params! {
    /// Losses by the number of the packet.
    pub struct ListedLossParams {
        /// Numbers of the lost packets, counted from 1 in the order of transmission.
        packets: Vec<u64>, required "5", source "this program";
    }
}

params! {
    /// Intervals in which all packets are lost.
    pub struct OutageParams {
        /// Mean time between two outages; exponentially distributed.
        on: Span = Span::from_secs(5), in Span::ZERO => LONGEST,
            source "mm-onoff, MEAN-ON-TIME";
        /// Mean duration of an outage; exponentially distributed.
        off: Span = Span::from_secs(1), in Span::ZERO => LONGEST,
            source "mm-onoff, MEAN-OFF-TIME";
    }
}

/// Longest and, except for 0, shortest mean time of an outage.
const LONGEST: Span = Span::from_secs(10_000_000);
const SHORTEST: Span = Span::from_millis(1);
/// Loss process of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// Random losses.
    Random(ChanceParams),
    /// Losses in bursts.
    GilbertElliott(GilbertElliottParams),
    /// Losses listed in rising order.
    Listed(ListedLossParams),
    /// Losses during outages.
    Outages(OutageParams),
}

impl Loss {
    /// Reads the value of `loss`.
    pub(crate) fn read(value: &Value) -> Result<Self> {
        let table = match value {
            Value::Table(table) if table.get("chance").is_none() => table,
            _ => return ChanceParams::read(value).map(Loss::Random),
        };
        if table.get("packets").is_some() {
            let mut params = ListedLossParams::from_table(table)?;
            params.packets.sort_unstable();
            params.packets.dedup();
            if params.packets.first() == Some(&0) {
                return Err(Error::not_allowed(0, "numbers from 1").at("packets"));
            }
            return Ok(Loss::Listed(params));
        }
        if table.get("on").is_some() || table.get("off").is_some() {
            let params = OutageParams::from_table(table)?;
            params.check()?;
            return Ok(Loss::Outages(params));
        }
        // Lists the keys of all forms, unless a key belongs to this one.
        const KEYS: [&str; 9] =
            ["p", "r", "bad", "good", "chance", "correlation", "packets", "on", "off"];
        match table.keys().next() {
            Some(key) if !KEYS[..4].iter().any(|key| table.get(key).is_some()) => {
                Err(Error::unknown("key", key, KEYS).at(key))
            }
            _ => GilbertElliottParams::from_table(table).map(Loss::GilbertElliott),
        }
    }

    /// Returns a value that reads back as the same.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Loss::Random(params) => params.to_value(),
            Loss::GilbertElliott(params) => table_of(params.entries()),
            Loss::Listed(params) => table_of(params.entries()),
            Loss::Outages(params) => table_of(params.entries()),
        }
    }
}

impl OutageParams {
    fn check(&self) -> Result<()> {
        for (key, span) in [("on", self.on), ("off", self.off)] {
            if span != Span::ZERO && span < SHORTEST {
                return Err(Error::not_allowed(span, format!("0s, or at least {SHORTEST}")).at(key));
            }
        }
        if self.on == Span::ZERO && self.off == Span::ZERO {
            return Err(Error::not_allowed(self.on, "a time above 0s if `off` is 0s").at("on"));
        }
        Ok(())
    }
}

/// State of a loss process.
#[derive(Clone)]
pub(crate) struct LossState {
    model: Loss,
    draws: Draws,
    /// True in the bad state of the Gilbert-Elliott model, or during an outage.
    is_bad: bool,
    /// End of the outage, or of the time without one.
    until: Time,
    /// End of the run, after which the state is irrelevant.
    end: Time,
    /// Draws for outages, which are independent of packets.
    outages: Stream,
    /// Number of packets, and position in the list.
    seen: u64,
    listed: usize,
}

impl LossState {
    /// Creates the state; `outages` draws for outages, all other draws happen when packets arrive.
    pub fn new(model: Loss, end: Time, outages: Stream) -> Self {
        // The first packet switches the link on.
        let is_bad = matches!(model, Loss::Outages(_));
        LossState {
            model,
            draws: Draws::default(),
            is_bad,
            until: Time::ZERO,
            end,
            outages,
            seen: 0,
            listed: 0,
        }
    }

    /// Returns whether the next packet, which is sent at `sent`, is lost.
    pub fn next(&mut self, sent: Time, stream: &mut Stream) -> bool {
        self.seen += 1;
        match &self.model {
            Loss::Random(params) => {
                self.draws.next(params.correlation, stream, Stream::uniform) < params.chance
            }
            Loss::GilbertElliott(params) => {
                // As in sch_netem.c: the state changes first, and the loss is that of the previous
                // state.
                let (leave, loss) = match self.is_bad {
                    false => (params.p, params.good),
                    true => (params.r.unwrap_or(1.0 - params.p), params.bad),
                };
                self.is_bad ^= stream.uniform() < leave;
                stream.uniform() < loss
            }
            Loss::Listed(params) => {
                let is_next = params.packets.get(self.listed) == Some(&self.seen);
                self.listed += usize::from(is_next);
                is_next
            }
            Loss::Outages(OutageParams { on, off }) => {
                if *on == Span::ZERO || *off == Span::ZERO {
                    return *on == Span::ZERO;
                }
                // A slow link may send the packet long after the end.
                while self.until <= sent.min(self.end) {
                    self.is_bad = !self.is_bad;
                    let mean = if self.is_bad { off } else { on };
                    let time = Span::from_secs_f64(self.outages.exponential(mean.as_secs_f64()));
                    self.until += time.max(Span::from_nanos(1));
                }
                self.is_bad
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::testing::autocorrelation;

    const COUNT: usize = 400_000;

    fn losses(model: Loss) -> Vec<bool> {
        let mut stream = Stream::for_component(3, 0, "loss");
        let mut state = LossState::new(model, Time::MAX, Stream::for_component(3, 0, "outages"));
        let sent = |number: usize| Time::ZERO + Span::from_millis(1) * number as u64;
        (0..COUNT).map(|number| state.next(sent(number), &mut stream)).collect()
    }

    fn rate(losses: &[bool]) -> f64 {
        losses.iter().filter(|lost| **lost).count() as f64 / losses.len() as f64
    }

    fn read(text: &str) -> Result<Loss> {
        Loss::read(&crate::scenario::parse_value(text))
    }

    /// Rate and mean burst in closed form. With the bad state's share b = p / (p + r), the rate is
    /// b bad + (1 - b) good. A burst of the simple model (bad = 1, good = 0) is geometric with mean
    /// 1 / r.
    #[test]
    fn gilbert_elliott_has_its_rate_and_its_bursts() {
        let simple = losses(read("{ p = 0.01, r = 0.25 }").unwrap());
        assert!((rate(&simple) - 0.01 / 0.26).abs() < 0.002, "{}", rate(&simple));
        let bursts: Vec<usize> =
            simple.split(|lost| !lost).map(<[bool]>::len).filter(|len| *len > 0).collect();
        let mean = bursts.iter().sum::<usize>() as f64 / bursts.len() as f64;
        assert!((mean - 4.0).abs() < 0.15, "{mean}");
        let longer = bursts.iter().filter(|len| **len > 4).count() as f64 / bursts.len() as f64;
        assert!((longer - 0.75 * 0.75 * 0.75 * 0.75).abs() < 0.02, "{longer}");

        let percent = ChanceParams { chance: 0.025, correlation: 0.0 };
        assert_eq!(read("'2.5%'").unwrap(), Loss::Random(percent));
        let full = losses(read("{ p = 0.02, r = 0.1, bad = 0.6, good = 0.01 }").unwrap());
        let expected = (0.02 * 0.6 + 0.1 * 0.01) / 0.12;
        assert!((rate(&full) - expected).abs() < 0.004, "{}", rate(&full));
        // Without r it is 1 - p: losses are independent.
        let plain = losses(read("{ p = 0.05 }").unwrap());
        assert!((rate(&plain) - 0.05).abs() < 0.002, "{}", rate(&plain));
    }

    #[test]
    fn a_list_says_which() {
        let lost = losses(read("{ packets = [7, 3, 3, 400000] }").unwrap());
        let numbers: Vec<usize> = (1..=COUNT).filter(|number| lost[number - 1]).collect();
        assert_eq!(numbers, [3, 7, 400_000]);
    }

    /// One packet per millisecond: share and mean duration of outages.
    #[test]
    fn outages_last_as_long_as_they_should() {
        let lost = losses(read("{ on = \"200ms\", off = \"50ms\" }").unwrap());
        assert!(!lost[0], "the link starts without an outage");
        assert!((rate(&lost) - 0.2).abs() < 0.015, "{}", rate(&lost));
        let lengths: Vec<usize> =
            lost.split(|lost| !lost).map(<[bool]>::len).filter(|length| *length > 0).collect();
        let mean = lengths.iter().sum::<usize>() as f64 / lengths.len() as f64;
        // Outages below a millisecond are observed by chance: given an observed one, its packets
        // are 1 / (1 - exp(-1/50)) = 50.5.
        assert!((mean - 50.5).abs() < 4.0, "{mean}");
        let longer = lengths.iter().filter(|length| **length > 50).count() as f64;
        assert!((longer / lengths.len() as f64 - libm::exp(-1.0)).abs() < 0.04);
        let none = read("{ off = \"0s\" }").unwrap();
        assert!(losses(none).iter().all(|lost| !lost));
        let all = read("{ on = \"0s\" }").unwrap();
        assert!(losses(all).iter().all(|lost| *lost));
    }

    /// A higher packet rate does not change the times of outages.
    #[test]
    fn packets_do_not_disturb_outages() {
        let model = read("{ on = \"200ms\", off = \"50ms\" }").unwrap();
        let every = |step: u64| {
            let mut stream = Stream::for_component(3, 0, "loss");
            let outages = Stream::for_component(3, 0, "outages");
            let mut state = LossState::new(model.clone(), Time::MAX, outages);
            let sent = |number: u64| Time::ZERO + Span::from_millis(step) * number;
            (0..10_000 / step).map(|n| state.next(sent(n), &mut stream)).collect::<Vec<_>>()
        };
        let seldom: Vec<bool> = every(1).into_iter().step_by(10).collect();
        assert_eq!(every(10), seldom);
    }

    /// Property of `correlation`: the rate is unchanged, and the autocorrelation falls by that
    /// factor with every packet. Without it, losses are independent.
    #[test]
    fn correlation_keeps_the_rate_and_is_what_it_says() {
        for (correlation, rates, laws) in
            [(0.0, 0.001, 0.006), (0.25, 0.003, 0.02), (0.8, 0.003, 0.02)]
        {
            let text = format!("{{ chance = 0.05, correlation = {correlation} }}");
            let lost = losses(read(&text).unwrap());
            assert!((rate(&lost) - 0.05).abs() < rates, "{}", rate(&lost));
            let lost: Vec<f64> = lost.into_iter().map(f64::from).collect();
            for distance in 1..=3 {
                let law = libm::pow(correlation, distance as f64);
                let measured = autocorrelation(&lost, distance);
                assert!((measured - law).abs() < laws, "{distance}: {measured} {law}");
            }
        }
    }
}
