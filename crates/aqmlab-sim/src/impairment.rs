//! What the way from a transmitter to the far end does to packets, as it is
//! stated in a scenario, and the draws behind it.
//!
//! # Sources
//! - tc-netem(8) and Linux's `sch_netem.c`: `loss random`, `loss gemodel p r
//!   1-h 1-k`, `duplicate`, `delay TIME JITTER distribution`; iproute2's
//!   `pareto.c` and `paretonormal.c`: the Pareto table is that of shape 3,
//!   shifted to mean 0 and scaled by 4/3, cut off at 4; the other is a quarter
//!   of the normal one and three quarters of it, at the same quantile.
//! - mahimahi's mm-onoff (its loss_queue.cc): a link that goes off and on.
//! - Gilbert (1960) and Elliott (1963), "Estimates of Error Rates for Codes
//!   on Burst-Noise Channels".
//!
//! # Differences
//! 1. Packets that netem would reorder by their jitter keep their order
//!    unless `reordering` is set: a packet arrives no earlier than the one
//!    before it. netem needs a FIFO behind it for that.
//! 2. `correlation` keeps mean and distribution: with that chance a packet has
//!    the draw of the one before it, else a new one, so the autocorrelation at
//!    a distance of k packets is correlation^k. netem adds the part of the last
//!    number to the rest of a new one, which draws all towards the middle:
//!    its `loss 1% 25%` loses two packets in a million (by its formula), and
//!    its jitter, which takes that number modulo the spread or the length of a
//!    table, has hardly any correlation at all.
//! 3. Distributions are computed, not looked up in tables of 16 bits. The
//!    normal distribution is cut off at 4 deviations, as netem's table is.
//! 4. A lost packet is not duplicated; in netem a loss and a duplication at
//!    once make one packet.
//! 5. mahimahi cuts the times of a link that goes off and on down to whole
//!    milliseconds; here they are not cut.

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
        /// A quarter of the normal one and three quarters of that.
        ParetoNormal = "paretonormal",
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
        /// The chance that a packet has the jitter of the one before it.
        correlation: f64 = 0.0, in 0.0 => MAX_CORRELATION, source "tc-netem(8), delay";
    }
}

params! {
    /// What happens to each packet with the same chance.
    pub struct ChanceParams {
        /// The chance that it happens to a packet.
        chance: f64 = 0.0, in 0.0 => 1.0, source "tc-netem(8), loss random and duplicate";
        /// The chance that a packet fares as the one before it.
        correlation: f64 = 0.0, in 0.0 => MAX_CORRELATION,
            source "tc-netem(8), loss random and duplicate";
    }
}

impl ChanceParams {
    /// Reads a bare chance, or a table.
    fn read(value: &Value, allowed: &str) -> Result<Self> {
        if let Value::Table(table) = value {
            return ChanceParams::from_table(table);
        }
        let chance = chance(value).ok_or_else(|| Error::not_allowed(value, allowed))?;
        Ok(ChanceParams { chance, ..ChanceParams::default() })
    }

    /// The form that reads back as the same.
    pub(crate) fn to_value(&self) -> Value {
        match self.correlation > 0.0 {
            true => entries(self),
            false => self.chance.to_text().into(),
        }
    }
}

/// At 1 all packets would fare as the first.
const MAX_CORRELATION: f64 = 0.9999;

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
    /// Times in which everything is lost.
    pub struct OutageParams {
        /// The mean time between two of them; exponentially distributed.
        on: Span = Span::from_secs(5), in Span::ZERO => LONGEST,
            source "mm-onoff, MEAN-ON-TIME";
        /// The mean time that one lasts; exponentially distributed.
        off: Span = Span::from_secs(1), in Span::ZERO => LONGEST,
            source "mm-onoff, MEAN-OFF-TIME";
    }
}

/// The longest and, but for 0, the shortest mean time of an outage.
const LONGEST: Span = Span::from_secs(10_000_000);
const SHORTEST: Span = Span::from_millis(1);

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
    Random(ChanceParams),
    /// In bursts.
    GilbertElliott(GilbertElliottParams),
    /// Those of a list, in rising order.
    Listed(ListedLossParams),
    /// Those that are sent while the link is off.
    Outages(OutageParams),
}

impl Loss {
    /// Reads what stands at `loss`.
    pub(crate) fn read(value: &Value) -> Result<Self> {
        const ALLOWED: &str = "a chance from 0 to 1 or in %, such as 0.01 or 1%, or a table with \
                               `chance`, with `p` (Gilbert-Elliott), with `on` and `off` (outages) \
                               or with `packets` (a list)";
        let table = match value {
            Value::Table(table) if table.get("chance").is_none() => table,
            _ => return ChanceParams::read(value, ALLOWED).map(Loss::Random),
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
            Loss::Random(params) => params.to_value(),
            Loss::GilbertElliott(params) => entries(params),
            Loss::Listed(params) => entries(params),
            Loss::Outages(params) => entries(params),
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

/// The way of a link as it is stated.
#[derive(Clone, Debug, PartialEq)]
pub struct PathConfig {
    /// Its delay.
    pub delay: DelayProcess,
    /// What is drawn on top.
    pub jitter: Option<JitterParams>,
    /// What is lost.
    pub loss: Option<Loss>,
    /// Which packets arrive twice.
    pub duplicate: ChanceParams,
    /// Whether packets may overtake each other.
    pub reordering: bool,
}

/// Draws of which each is the one before it with some chance, and else new.
///
/// Whatever is made of them has the distribution of independent draws, and at
/// a distance of k draws the autocorrelation correlation^k.
#[derive(Default)]
struct Draws {
    last: Option<f64>,
}

impl Draws {
    fn next(
        &mut self,
        correlation: f64,
        stream: &mut Stream,
        new: impl FnOnce(&mut Stream) -> f64,
    ) -> f64 {
        if correlation == 0.0 {
            return new(stream);
        }
        let last = self.last.filter(|_| stream.uniform() < correlation);
        let value = last.unwrap_or_else(|| new(stream));
        self.last = Some(value);
        value
    }
}

/// What happens to some packets, under way.
pub(crate) struct ChanceState {
    params: ChanceParams,
    draws: Draws,
}

impl ChanceState {
    /// `None` if it never happens.
    pub fn new(params: &ChanceParams) -> Option<Self> {
        let state = ChanceState { params: params.clone(), draws: Draws::default() };
        (params.chance > 0.0).then_some(state)
    }

    /// Whether it happens to the next packet.
    pub fn next(&mut self, stream: &mut Stream) -> bool {
        let draw = self.draws.next(self.params.correlation, stream, Stream::uniform);
        draw < self.params.chance
    }
}

/// A loss model under way.
pub(crate) struct LossState {
    model: Loss,
    draws: Draws,
    /// In the bad state of the Gilbert-Elliott model, or off.
    is_bad: bool,
    /// When the outage, or the time without one, is over.
    until: Time,
    /// Draws for outages, which packets do not disturb.
    outages: Stream,
    /// Packets seen, and how many of the list are behind.
    seen: u64,
    listed: usize,
}

impl LossState {
    /// `outages` draws for these; all else draws when packets come.
    pub fn new(model: Loss, outages: Stream) -> Self {
        // It is switched on when the first packet looks.
        let is_bad = matches!(model, Loss::Outages(_));
        LossState {
            model,
            draws: Draws::default(),
            is_bad,
            until: Time::ZERO,
            outages,
            seen: 0,
            listed: 0,
        }
    }

    /// Whether the next packet is lost, which is sent at `sent`.
    pub fn next(&mut self, sent: Time, stream: &mut Stream) -> bool {
        self.seen += 1;
        match &self.model {
            Loss::Random(params) => {
                self.draws.next(params.correlation, stream, Stream::uniform) < params.chance
            }
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
            Loss::Outages(OutageParams { on, off }) => {
                if *on == Span::ZERO || *off == Span::ZERO {
                    return *on == Span::ZERO;
                }
                while self.until <= sent {
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

impl Distribution {
    /// A draw in units of the spread.
    fn draw(self, stream: &mut Stream) -> f64 {
        const MOST: f64 = 4.0;
        let pareto = |beyond: f64| ((1.0 / libm::cbrt(beyond) - 1.5) * 4.0 / 3.0).min(MOST);
        match self {
            Distribution::Uniform => 2.0 * stream.uniform() - 1.0,
            Distribution::Normal => stream.normal().clamp(-MOST, MOST),
            Distribution::Pareto => pareto(1.0 - stream.uniform()),
            Distribution::ParetoNormal => {
                let normal = stream.normal().clamp(-MOST, MOST);
                let beyond = 0.5 * libm::erfc(normal * std::f64::consts::FRAC_1_SQRT_2);
                0.25 * normal + 0.75 * pareto(beyond)
            }
        }
    }
}

/// Jitter under way.
pub(crate) struct JitterState {
    params: JitterParams,
    draws: Draws,
}

impl JitterState {
    pub fn new(params: JitterParams) -> Self {
        JitterState { params, draws: Draws::default() }
    }

    /// The delay of the next packet, about the mean `delay`.
    pub fn next(&mut self, delay: Span, stream: &mut Stream) -> Span {
        let JitterParams { spread, distribution, correlation } = &self.params;
        let unit = self.draws.next(*correlation, stream, |stream| distribution.draw(stream));
        Span::from_secs_f64(delay.as_secs_f64() + unit * spread.as_secs_f64())
    }
}

/// Reads the keys of a link that say what its way does.
pub(crate) fn read_path(
    table: &Table,
    delay: DelayProcess,
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
    let duplicate = table.get("duplicate").map(|value| {
        ChanceParams::read(value, "a chance from 0 to 1 or in %, or a table with `chance`")
            .map_err(|error| error.at("duplicate"))
    });
    Ok(PathConfig {
        delay,
        jitter: jitter.transpose()?,
        loss: loss.transpose()?,
        duplicate: duplicate.transpose()?.unwrap_or_default(),
        reordering,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: usize = 400_000;

    fn losses(model: Loss) -> Vec<bool> {
        let mut stream = Stream::for_component(3, 0, "loss");
        let mut state = LossState::new(model, Stream::for_component(3, 0, "outages"));
        let sent = |number: usize| Time::ZERO + Span::from_millis(1) * number as u64;
        (0..COUNT).map(|number| state.next(sent(number), &mut stream)).collect()
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

        assert_eq!(
            read("'2.5%'").unwrap(),
            Loss::Random(ChanceParams { chance: 0.025, correlation: 0.0 })
        );
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

    /// A packet a millisecond: the share of the time off, and its mean length.
    #[test]
    fn outages_last_as_long_as_they_should() {
        let lost = losses(read("{ on = \"200ms\", off = \"50ms\" }").unwrap());
        assert!(!lost[0], "it begins on");
        assert!((rate(&lost) - 0.2).abs() < 0.015, "{}", rate(&lost));
        let lengths: Vec<usize> =
            lost.split(|lost| !lost).map(<[bool]>::len).filter(|length| *length > 0).collect();
        let mean = lengths.iter().sum::<usize>() as f64 / lengths.len() as f64;
        // Those of less than a millisecond are seen by chance: given that one is
        // seen, its packets are 1 / (1 - exp(-1/50)) = 50.5.
        assert!((mean - 50.5).abs() < 4.0, "{mean}");
        let longer = lengths.iter().filter(|length| **length > 50).count() as f64;
        assert!((longer / lengths.len() as f64 - libm::exp(-1.0)).abs() < 0.04);
        let none = read("{ off = \"0s\" }").unwrap();
        assert!(losses(none).iter().all(|lost| !lost));
        let all = read("{ on = \"0s\" }").unwrap();
        assert!(losses(all).iter().all(|lost| *lost));
    }

    /// Who sends more finds the link off at the same times.
    #[test]
    fn packets_do_not_disturb_outages() {
        let model = read("{ on = \"200ms\", off = \"50ms\" }").unwrap();
        let every = |step: u64| {
            let mut stream = Stream::for_component(3, 0, "loss");
            let outages = Stream::for_component(3, 0, "outages");
            let mut state = LossState::new(model.clone(), outages);
            let sent = |number: u64| Time::ZERO + Span::from_millis(step) * number;
            (0..10_000 / step).map(|n| state.next(sent(n), &mut stream)).collect::<Vec<_>>()
        };
        let seldom: Vec<bool> = every(1).into_iter().step_by(10).collect();
        assert_eq!(every(10), seldom);
    }

    #[test]
    fn losses_that_are_none_are_refused() {
        for (text, expected) in [
            ("1.5", "a chance from 0 to 1"),
            ("{ chance = 1.5 }", "chance: "),
            ("{ chance = 0.1, correlation = 1 }", "correlation: "),
            ("{ chance = 0.1, p = 0.1 }", "unknown key"),
            ("nan", "a chance from 0 to 1"),
            ("{ p = 2.0 }", "p: "),
            ("{ p = 0.1, r = 1.5 }", "r: "),
            ("{ packets = [0] }", "numbers from 1"),
            ("{ packets = [-1] }", "packets"),
            ("{ q = 1 }", "unknown key"),
            ("{ on = \"0s\", off = \"0s\" }", "on: "),
            ("{ off = \"10us\" }", "off: "),
            ("{ on = \"1s\", p = 0.1 }", "unknown key"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    /// Jitter in units of the spread.
    fn jitter_draws(distribution: Distribution, correlation: f64) -> Vec<f64> {
        let mut stream = Stream::for_component(3, 0, "jitter");
        let params = JitterParams { spread: Span::from_millis(2), distribution, correlation };
        let mut state = JitterState::new(params);
        let delay = Span::from_millis(20);
        (0..COUNT).map(|_| (state.next(delay, &mut stream).as_secs_f64() - 0.02) / 0.002).collect()
    }

    /// Mean, deviation and a tail, in units of the spread.
    fn jitter(distribution: Distribution, beyond: f64) -> [f64; 3] {
        let draws = jitter_draws(distribution, 0.0);
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
        // Of a quarter and three quarters at the same quantile: the median is that of both,
        // 0 and 4/3 (2^(1/3) - 1.5), and so is what lies beyond one deviation.
        let median = 0.75 * 4.0 / 3.0 * (libm::cbrt(2.0) - 1.5);
        assert!((jitter(Distribution::ParetoNormal, median)[2] - 0.5).abs() < 0.003);
        let one = 0.25 + 0.75 * 4.0 / 3.0 * (1.0 / libm::cbrt(0.158_655) - 1.5);
        assert!((jitter(Distribution::ParetoNormal, one)[2] - 0.158_655).abs() < 0.003);
    }

    fn autocorrelation(values: &[f64], distance: usize) -> f64 {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let product = |(a, b): (&f64, &f64)| (a - mean) * (b - mean);
        let along: f64 = values.iter().zip(&values[distance..]).map(product).sum();
        along / values.iter().zip(values).map(product).sum::<f64>()
    }

    /// The law of `correlation`: means and distributions stay, and the
    /// autocorrelation falls by that factor with every packet.
    #[test]
    fn correlation_keeps_the_mean_and_is_what_it_says() {
        let as_numbers = |lost: Vec<bool>| lost.into_iter().map(f64::from).collect::<Vec<f64>>();
        for correlation in [0.25, 0.8] {
            let text = format!("{{ chance = 0.05, correlation = {correlation} }}");
            let lost = losses(read(&text).unwrap());
            assert!((rate(&lost) - 0.05).abs() < 0.003, "{}", rate(&lost));
            let lost = as_numbers(lost);
            for distribution in [Distribution::Uniform, Distribution::Pareto] {
                let jitter = jitter_draws(distribution, correlation);
                let mean = |draws: &[f64]| draws.iter().sum::<f64>() / COUNT as f64;
                let independent = mean(&jitter_draws(distribution, 0.0));
                assert!((mean(&jitter) - independent).abs() < 0.015, "{}", mean(&jitter));
                let half = jitter.iter().filter(|x| **x > 0.5).count() as f64 / COUNT as f64;
                let expected = self::jitter(distribution, 0.5)[2];
                assert!((half - expected).abs() < 0.01, "{half} {expected}");
                for distance in 1..=3 {
                    let law = libm::pow(correlation, distance as f64);
                    for values in [&lost, &jitter] {
                        let measured = autocorrelation(values, distance);
                        assert!((measured - law).abs() < 0.02, "{distance}: {measured} {law}");
                    }
                }
            }
        }
    }
}
