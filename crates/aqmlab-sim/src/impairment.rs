//! What the way from a transmitter to the far end does to packets, as it is
//! stated in a scenario, and the draws behind it.
//!
//! # Sources
//! - tc-netem(8) and Linux's `sch_netem.c`: `loss random`, `loss gemodel p r
//!   1-h 1-k`, `duplicate`, `delay TIME JITTER distribution`; iproute2's
//!   `pareto.c`: the Pareto table is that of shape 3, shifted to mean 0 and
//!   scaled by 4/3, cut off at 4.
//! - Gilbert (1960) and Elliott (1963), "Estimates of Error Rates for Codes
//!   on Burst-Noise Channels".
//!
//! # Differences
//! 1. Packets that netem would reorder by their jitter keep their order
//!    unless `reordering` is set: a packet arrives no earlier than the one
//!    before it. netem needs a FIFO behind it for that.
//! 2. Draws are independent; netem's correlations are not modelled (its manual
//!    advises against them).
//! 3. Distributions are computed, not looked up in tables of 16 bits. The
//!    normal distribution is cut off at 4 deviations, as netem's table is.
//! 4. A lost packet is not duplicated; in netem a loss and a duplication at
//!    once make one packet.

use aqmlab_core::params::{check_range, read_value};
use aqmlab_core::{
    Error, ParamType, Params, Result, Span, Stream, Table, Time, Value, choices, params,
};

use crate::rate::schedule::{Schedule, Steps};
use crate::rate::{ReadFile, Scale, read_columns};

choices! {
    /// How jitter is distributed.
    pub enum Distribution {
        /// Between one spread less and one more.
        Uniform = "uniform",
        /// With the spread as the standard deviation.
        Normal = "normal",
        /// A long tail to the right: netem's table, of mean 0.
        Pareto = "pareto",
    }
}

params! {
    /// A part of the delay that is drawn for each packet.
    pub struct JitterParams {
        /// netem's JITTER: the half width, the deviation, or the unit of the Pareto table.
        spread: Span = Span::from_millis(1), in Span::ZERO => Span::from_secs(3600),
            source "tc-netem(8), delay";
        /// How it is distributed about the link's delay; what would be below zero is zero.
        distribution: Distribution = Distribution::Normal, source "tc-netem(8), distribution";
    }
}

params! {
    /// Losses in bursts: the Gilbert-Elliott model.
    pub struct GilbertElliottParams {
        /// The chance to go from the good state to the bad one, at each packet.
        p: f64 = 0.0, in 0.0 => 1.0, source "tc-netem(8), gemodel p";
        /// The chance to go back; `none` for 1 - p.
        r: Option<f64> = None, source "tc-netem(8), gemodel r";
        /// The chance of a loss in the bad state: netem's 1-h.
        bad: f64 = 1.0, in 0.0 => 1.0, source "tc-netem(8), gemodel 1-h";
        /// The chance of a loss in the good state: netem's 1-k.
        good: f64 = 0.0, in 0.0 => 1.0, source "tc-netem(8), gemodel 1-k";
    }
}

params! {
    /// Losses by the number of the packet.
    pub struct ListedLossParams {
        /// Which packets are lost, counted from 1 as they leave the transmitter.
        packets: Vec<u64> = vec![], source "this program";
    }
}

params! {
    /// A delay that changes at set times.
    pub struct DelayStepsParams {
        /// When each delay begins: `[["0s", "20ms"], ["50s", "80ms"]]`.
        steps: Steps<Span> = Steps(vec![(Span::ZERO, Span::from_millis(10))]),
            source "this program";
        /// Whether it begins again; the last step then lasts as long as the one before it.
        repeat: bool = false, source "this program";
    }
}

params! {
    /// A file of two columns, time in seconds and delay.
    pub struct DelayCsvParams {
        /// The file; looked for beside the scenario, then in the working directory.
        csv: String = String::new(), source "this program";
        /// What 1 in the second column means.
        unit: Span = Span::from_millis(1), in Span::from_nanos(1) => Span::from_secs(1),
            source "this program";
        /// Whether it begins again; the last line then lasts as long as the one before it.
        repeat: bool = true, source "this program";
        /// What names the file's content; filled in. If given, the file must still be that.
        content: Option<String> = None, source "this program";
    }
}

const MAX_DELAY: Span = Span::from_secs(3600);

/// The propagation delay of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum DelayProcess {
    /// Always the same.
    Constant(Span),
    /// In steps.
    Steps(DelayStepsParams, Schedule),
    /// In steps, from a file.
    Csv(DelayCsvParams, Schedule),
}

impl DelayProcess {
    /// Reads what stands at `delay`.
    pub(crate) fn read(value: &Value, read_file: ReadFile<'_>) -> Result<Self> {
        let Value::Table(table) = value else {
            let delay = read_value::<Span>(value)?;
            check_range(&delay, &Span::ZERO, &MAX_DELAY).map_err(|error| error.given(value))?;
            return Ok(DelayProcess::Constant(delay));
        };
        if table.get("steps").is_some() {
            let params = DelayStepsParams::from_table(table)?;
            let schedule = params
                .steps
                .schedule(params.repeat, |delay| delay.as_nanos())
                .and_then(check_delays)
                .map_err(|error| error.at("steps"))?;
            return Ok(DelayProcess::Steps(params, schedule));
        }
        if table.get("csv").is_some() {
            let mut params = DelayCsvParams::from_table(table)?;
            let (unit, most) = (params.unit.as_nanos() as f64, MAX_DELAY.as_nanos());
            let scale = Scale { unit, most, repeats: params.repeat };
            let schedule = read_columns(&params.csv, &mut params.content, &scale, read_file)?;
            return Ok(DelayProcess::Csv(params, schedule));
        }
        let allowed = "a time such as \"20ms\", or a table with `steps` or `csv`";
        Err(Error::not_allowed(value, allowed))
    }

    /// The form that reads back as the same.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            DelayProcess::Constant(delay) => delay.to_text().into(),
            DelayProcess::Steps(params, _) => entries(params),
            DelayProcess::Csv(params, _) => entries(params),
        }
    }

    /// The mean over a run of this length.
    pub fn mean(&self, duration: Span) -> Span {
        match self {
            DelayProcess::Constant(delay) => *delay,
            DelayProcess::Steps(_, schedule) | DelayProcess::Csv(_, schedule) => {
                Span::from_nanos(schedule.mean(duration))
            }
        }
    }

    /// The delay of what leaves at `time`.
    pub(crate) fn at(&self, time: Time) -> Span {
        match self {
            DelayProcess::Constant(delay) => *delay,
            DelayProcess::Steps(_, schedule) | DelayProcess::Csv(_, schedule) => {
                Span::from_nanos(schedule.at(time).0)
            }
        }
    }
}

fn check_delays(schedule: Schedule) -> Result<Schedule> {
    match Span::from_nanos(schedule.max()) {
        max if max > MAX_DELAY => Err(Error::not_allowed(max, format!("at most {MAX_DELAY}"))),
        _ => Ok(schedule),
    }
}

fn entries(params: &impl Params) -> Value {
    let entries = params.entries().into_iter();
    Value::Table(entries.map(|(key, text)| (key.to_string(), text)).collect())
}

/// A chance as a number, or as text in per cent.
fn chance(value: &Value) -> Option<f64> {
    let percent = match value {
        Value::Text(text) => text.trim().strip_suffix('%'),
        _ => None,
    };
    let chance = match percent {
        Some(number) => number.trim().parse::<f64>().ok().map(|number| number / 100.0),
        None => f64::read(value),
    };
    chance.filter(|chance| (0.0..=1.0).contains(chance))
}

/// Which packets are lost on the way.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// Each with the same chance.
    Random(f64),
    /// In bursts.
    GilbertElliott(GilbertElliottParams),
    /// Those of a list, in rising order.
    Listed(ListedLossParams),
}

impl Loss {
    /// Reads what stands at `loss`.
    pub(crate) fn read(value: &Value) -> Result<Self> {
        let Value::Table(table) = value else {
            return chance(value).map(Loss::Random).ok_or_else(|| {
                let allowed = "a chance from 0 to 1 or in %, such as 0.01 or 1%, or a table with \
                               `p` (Gilbert-Elliott) or `packets` (a list)";
                Error::not_allowed(value, allowed)
            });
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
        let params = GilbertElliottParams::from_table(table)?;
        match params.r {
            Some(r) if !(0.0..=1.0).contains(&r) => {
                Err(Error::not_allowed(r, "number from 0 to 1").at("r"))
            }
            _ => Ok(Loss::GilbertElliott(params)),
        }
    }

    /// The form that reads back as the same.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Loss::Random(chance) => chance.to_text().into(),
            Loss::GilbertElliott(params) => entries(params),
            Loss::Listed(params) => entries(params),
        }
    }
}

/// The way of a link as it is stated.
#[derive(Clone, Debug, PartialEq)]
pub struct PathConfig {
    /// Its delay.
    pub delay: DelayProcess,
    /// What is drawn on top.
    pub jitter: Option<JitterParams>,
    /// What is lost.
    pub loss: Option<Loss>,
    /// The chance of a packet to arrive twice.
    pub duplicate: f64,
    /// Whether packets may overtake each other.
    pub reordering: bool,
}

/// A loss model under way.
pub(crate) struct LossState {
    model: Loss,
    is_bad: bool,
    /// Packets seen, and how many of the list are behind.
    seen: u64,
    listed: usize,
}

impl LossState {
    pub fn new(model: Loss) -> Self {
        LossState { model, is_bad: false, seen: 0, listed: 0 }
    }

    /// Whether the next packet is lost.
    pub fn next(&mut self, stream: &mut Stream) -> bool {
        self.seen += 1;
        match &self.model {
            Loss::Random(chance) => stream.uniform() < *chance,
            Loss::GilbertElliott(params) => {
                // As in sch_netem.c: the state moves on, and the loss is that
                // of the state before.
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
        }
    }
}

impl JitterParams {
    /// The delay of a packet, about the mean `delay`.
    pub(crate) fn draw(&self, delay: Span, stream: &mut Stream) -> Span {
        const MOST: f64 = 4.0;
        let unit = match self.distribution {
            Distribution::Uniform => 2.0 * stream.uniform() - 1.0,
            Distribution::Normal => stream.normal().clamp(-MOST, MOST),
            Distribution::Pareto => {
                let pareto = 1.0 / libm::cbrt(1.0 - stream.uniform());
                ((pareto - 1.5) * 4.0 / 3.0).min(MOST)
            }
        };
        Span::from_secs_f64(delay.as_secs_f64() + unit * self.spread.as_secs_f64())
    }
}

/// Reads the keys of a link that say what its way does.
pub(crate) fn read_path(
    table: &Table,
    delay: DelayProcess,
    duplicate: f64,
    reordering: bool,
) -> Result<PathConfig> {
    let jitter = table.get("jitter").map(|value| {
        let read = match value {
            Value::Table(table) => JitterParams::from_table(table),
            _ => Err(Error::not_allowed(value, "a table such as { spread = \"2ms\" }")),
        };
        read.map_err(|error| error.at("jitter"))
    });
    let loss = table.get("loss").map(|value| Loss::read(value).map_err(|error| error.at("loss")));
    Ok(PathConfig {
        delay,
        jitter: jitter.transpose()?,
        loss: loss.transpose()?,
        duplicate,
        reordering,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: usize = 400_000;

    fn losses(model: Loss) -> Vec<bool> {
        let mut stream = Stream::for_component(3, 0, "loss");
        let mut state = LossState::new(model);
        (0..COUNT).map(|_| state.next(&mut stream)).collect()
    }

    fn rate(losses: &[bool]) -> f64 {
        losses.iter().filter(|lost| **lost).count() as f64 / losses.len() as f64
    }

    fn read(text: &str) -> Result<Loss> {
        Loss::read(&crate::scenario::parse_value(text))
    }

    #[test]
    fn random_losses_are_independent() {
        let losses = losses(read("0.03").unwrap());
        assert!((rate(&losses) - 0.03).abs() < 0.001);
        let after: Vec<bool> =
            losses.windows(2).filter(|pair| pair[0]).map(|pair| pair[1]).collect();
        assert!((rate(&after) - 0.03).abs() < 0.006, "{}", rate(&after));
    }

    /// Rate and mean burst in closed form: with the bad state's share
    /// b = p / (p + r), the rate is b bad + (1 - b) good; a burst of the
    /// simple model (bad = 1, good = 0) is geometric with mean 1 / r.
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

        assert_eq!(read("'2.5%'").unwrap(), Loss::Random(0.025));
        let full = losses(read("{ p = 0.02, r = 0.1, bad = 0.6, good = 0.01 }").unwrap());
        let expected = (0.02 * 0.6 + 0.1 * 0.01) / 0.12;
        assert!((rate(&full) - expected).abs() < 0.004, "{}", rate(&full));
        // Without r it is 1 - p: no memory at all.
        let plain = losses(read("{ p = 0.05 }").unwrap());
        assert!((rate(&plain) - 0.05).abs() < 0.002, "{}", rate(&plain));
    }

    #[test]
    fn a_list_says_which() {
        let lost = losses(read("{ packets = [7, 3, 3, 400000] }").unwrap());
        let numbers: Vec<usize> = (1..=COUNT).filter(|number| lost[number - 1]).collect();
        assert_eq!(numbers, [3, 7, 400_000]);
    }

    #[test]
    fn losses_that_are_none_are_refused() {
        for (text, expected) in [
            ("1.5", "a chance from 0 to 1"),
            ("nan", "a chance from 0 to 1"),
            ("{ p = 2.0 }", "p: "),
            ("{ p = 0.1, r = 1.5 }", "r: "),
            ("{ packets = [0] }", "numbers from 1"),
            ("{ packets = [-1] }", "packets"),
            ("{ q = 1 }", "unknown key"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    /// Mean, deviation and a tail, in units of the spread.
    fn jitter(distribution: Distribution, beyond: f64) -> [f64; 3] {
        let mut stream = Stream::for_component(3, 0, "jitter");
        let params = JitterParams { spread: Span::from_millis(2), distribution };
        let delay = Span::from_millis(20);
        let draws: Vec<f64> = (0..COUNT)
            .map(|_| (params.draw(delay, &mut stream).as_secs_f64() - 0.02) / 0.002)
            .collect();
        let count = COUNT as f64;
        let mean = draws.iter().sum::<f64>() / count;
        let deviation = (draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count).sqrt();
        [mean, deviation, draws.iter().filter(|x| **x > beyond).count() as f64 / count]
    }

    #[test]
    fn jitter_is_distributed_as_it_says() {
        // netem's Pareto in closed form: P(X > x) = (3x/4 + 3/2)^-3, cut off
        // at 4 where 1.1 % are: mean -2/3 4.5^-2, second moment 0.676.
        let survival = |x: f64| 1.0 / ((0.75 * x + 1.5) * (0.75 * x + 1.5) * (0.75 * x + 1.5));
        for (distribution, beyond, expected, tolerance) in [
            (Distribution::Uniform, 0.5, [0.0, 1.0 / 3.0f64.sqrt(), 0.25], 0.01),
            (Distribution::Normal, 1.0, [0.0, 1.0, 0.158_655], 0.01),
            (Distribution::Pareto, 1.0, [-0.033, 0.821, survival(1.0)], 0.02),
        ] {
            let measured = jitter(distribution, beyond);
            for (value, expected) in measured.into_iter().zip(expected) {
                assert!((value - expected).abs() < tolerance, "{distribution:?}: {measured:?}");
            }
        }
        assert!((jitter(Distribution::Pareto, 3.99)[2] - survival(3.99)).abs() < 0.001);
    }
}
