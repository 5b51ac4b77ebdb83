//! Rate of a link as stated in a scenario: constant, in steps, from a file, or random.
//!
//! Rates have two forms at run time. A sequence of rates (`steps`, `csv`, `markov`,
//! `ornstein-uhlenbeck`) drives a transmitter. A sequence of *grants*, each a time and a number of
//! bytes (`trace`, `lte`, `wifi`), drives the link itself.

pub(crate) mod course;
mod files;
pub(crate) mod grants;
mod input;
pub mod radio;
pub mod random;
pub mod schedule;
#[cfg(test)]
pub(crate) mod testing;

use std::sync::Arc;

use aqmlab_core::{
    Bytes, Error, ParamType, Params, Rate, Result, Span, Stream, Table, Time, Value, params,
};

use self::course::{Course, Random};
pub(crate) use self::files::Row;
pub use self::files::{Cursor, Opportunities};
use self::grants::Grants;
pub use self::input::InputFile;
use self::radio::{Lte, LteParams, Wifi, WifiParams};
use self::random::{Markov, MarkovParams, OrnsteinUhlenbeck, OrnsteinUhlenbeckParams};
use self::schedule::{Schedule, Steps};

/// Maximum rate: keeps the transmitter's arithmetic in 64 bits.
pub const MAX_RATE: Rate = Rate::from_bps(1_000_000_000_000_000);

/// Reader of files named by a scenario.
pub type ReadFile<'a> = &'a dyn Fn(&str) -> Result<Arc<InputFile>>;

params! {
    /// Rate that changes at set times.
    pub struct RateStepsParams {
        /// Start times and rates: `[["0s", "100mbit"], ["50s", "10mbit"]]`.
        steps: Steps<Rate>, required "0s 100mbit, 50s 10mbit", source "this program";
        /// True if the steps repeat; the last step then has the duration of the one before.
        repeat: bool = false, source "this program";
    }
}

params! {
    /// File of delivery opportunities in mahimahi's format, which repeats.
    pub struct TraceParams {
        /// File name; relative to the scenario, then to the working directory.
        trace: String, required "cell.down", source "mahimahi, link_queue.cc";
        /// Bytes that may leave at each opportunity.
        opportunity: Bytes = Bytes::new(1504), in Bytes::new(1) => Bytes::new(1 << 30),
            source "mahimahi, link_queue.cc: 1500 bytes and 4 of its header";
        /// Digest of the file's content, filled in. If given, the file must match it.
        content: Option<String> = None, source "this program";
    }
}

params! {
    /// File of two columns, time in seconds and rate.
    pub struct CsvParams {
        /// File name; relative to the scenario, then to the working directory.
        csv: String, required "rates.csv", source "this program";
        /// Unit of the second column.
        unit: Rate = Rate::from_bps(1_000_000), in Rate::from_bps(1) => Rate::from_bps(1_000_000_000),
            source "this program";
        /// True if the lines repeat; the last line then has the duration of the one before.
        repeat: bool = true, source "this program";
        /// Digest of the file's content, filled in. If given, the file must match it.
        content: Option<String> = None, source "this program";
    }
}

/// Rate of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum RateProcess {
    /// Constant rate.
    Constant(Rate),
    /// Steps.
    Steps(RateStepsParams, Schedule),
    /// Steps from a file.
    Csv(CsvParams, Schedule),
    /// File of opportunities.
    Trace(TraceParams, Arc<Opportunities>),
    /// Markov chain.
    Markov(MarkovParams),
    /// Ornstein-Uhlenbeck process.
    OrnsteinUhlenbeck(OrnsteinUhlenbeckParams),
    /// Synthetic LTE link.
    Lte(LteParams),
    /// Synthetic Wi-Fi link.
    Wifi(WifiParams),
}

/// Names of the processes, whose parameters are in the same table.
const PROCESSES: [&str; 4] = ["markov", "ornstein-uhlenbeck", "lte", "wifi"];

/// Adds a hint to an error of `rate` if the value is the name of a process.
pub(crate) fn hinted(error: Error) -> Error {
    match error.given.as_deref() {
        Some(name) if error.key == "rate" && PROCESSES.contains(&name) => {
            let hint = format!("rate = {{ process = \"{name}\" }}");
            error.hint(hint)
        }
        _ => error,
    }
}

/// Process at run time.
pub(crate) enum RateSource {
    Constant(Rate),
    Course(Course),
    Grants(Grants),
}

impl RateProcess {
    /// Reads the value of `rate`.
    pub(crate) fn read(value: &Value, read_file: ReadFile<'_>) -> Result<Self> {
        let Value::Table(table) = value else {
            let rate = aqmlab_core::params::read_value::<Rate>(value)?;
            aqmlab_core::params::check_range(&rate, &Rate::from_bps(1), &MAX_RATE)
                .map_err(|error| error.given(value))?;
            return Ok(RateProcess::Constant(rate));
        };
        if let Some(name) = table.get("process") {
            return Self::read_process(name, table);
        }
        if table.get("steps").is_some() {
            let params = RateStepsParams::from_table(table)?;
            let schedule = params.steps.schedule(params.repeat, |rate| rate.as_bps());
            let schedule = schedule.and_then(check_rates).map_err(|error| error.at("steps"))?;
            return Ok(RateProcess::Steps(params, schedule));
        }
        if table.get("csv").is_some() {
            let mut params = CsvParams::from_table(table)?;
            let scale = Scale {
                unit: params.unit.as_bps() as f64,
                most: MAX_RATE.as_bps(),
                repeats: params.repeat,
            };
            let schedule = read_columns(&params.csv, &mut params.content, &scale, read_file)?;
            let schedule =
                check_rates(schedule).map_err(|error| error.in_file(&params.csv).at("csv"))?;
            return Ok(RateProcess::Csv(params, schedule));
        }
        if table.get("trace").is_some() {
            let mut params = TraceParams::from_table(table)?;
            let trace = read_content(&params.trace, &mut params.content, read_file)
                .and_then(|file| file.opportunities(&params.trace))
                .map_err(|error| error.at("trace"))?;
            return Ok(RateProcess::Trace(params, trace));
        }
        let allowed =
            "a rate such as \"10mbit\", or a table with `steps`, `trace`, `csv` or `process`";
        Err(Error::not_allowed(value, allowed))
    }

    fn read_process(name: &Value, table: &Table) -> Result<Self> {
        let name = name.as_text().map_err(|error| error.at("process"))?;
        let mut table = table.clone();
        table.remove("process");
        match name {
            "markov" => {
                let params = MarkovParams::from_table(&table)?;
                params.check()?;
                Ok(RateProcess::Markov(params))
            }
            "ornstein-uhlenbeck" => {
                OrnsteinUhlenbeckParams::from_table(&table).map(RateProcess::OrnsteinUhlenbeck)
            }
            "lte" => LteParams::from_table(&table).map(RateProcess::Lte),
            "wifi" => WifiParams::from_table(&table).map(RateProcess::Wifi),
            other => Err(Error::unknown("process", other, PROCESSES).at("process")),
        }
    }

    /// Returns a value that reads back as the same process.
    pub(crate) fn to_value(&self) -> Value {
        let (name, entries) = match self {
            RateProcess::Constant(rate) => return rate.to_text().into(),
            RateProcess::Steps(params, _) => (None, params.entries()),
            RateProcess::Csv(params, _) => (None, params.entries()),
            RateProcess::Trace(params, _) => (None, params.entries()),
            RateProcess::Markov(params) => (Some("markov"), params.entries()),
            RateProcess::OrnsteinUhlenbeck(params) => {
                (Some("ornstein-uhlenbeck"), params.entries())
            }
            RateProcess::Lte(params) => (Some("lte"), params.entries()),
            RateProcess::Wifi(params) => (Some("wifi"), params.entries()),
        };
        let name = name.map(|name| ("process", Value::from(name)));
        table_of(name.into_iter().chain(entries))
    }

    /// Returns true if the process gives grants instead of rates.
    pub fn gives_grants(&self) -> bool {
        matches!(self, RateProcess::Trace(..) | RateProcess::Lte(_) | RateProcess::Wifi(_))
    }

    /// Returns the mean rate of a run of this length, which disciplines and limits in
    /// bandwidth-delay products use.
    pub fn mean(&self, duration: Span) -> Rate {
        let bps = match self {
            RateProcess::Constant(rate) => rate.as_bps(),
            RateProcess::Steps(_, schedule) | RateProcess::Csv(_, schedule) => {
                schedule.mean(duration)
            }
            RateProcess::Trace(params, trace) => {
                let bits = 8000.0 * params.opportunity.get() as f64 * trace.total() as f64;
                (bits / trace.period() as f64).round() as u64
            }
            RateProcess::Markov(params) => params.mean().round() as u64,
            RateProcess::OrnsteinUhlenbeck(params) => params.mean.as_bps(),
            RateProcess::Lte(params) => params.mean.as_bps(),
            RateProcess::Wifi(params) => Wifi::mean(params).round() as u64,
        };
        Rate::from_bps(bps.clamp(1, MAX_RATE.as_bps()))
    }

    /// Returns the process for a run that ends at `end`; `stream` is for random ones.
    pub(crate) fn source(&self, stream: Stream, end: Time) -> RateSource {
        let random = |process| RateSource::Course(Course::Random(Box::new(process)));
        match self {
            RateProcess::Constant(rate) => RateSource::Constant(*rate),
            RateProcess::Steps(_, schedule) | RateProcess::Csv(_, schedule) => {
                RateSource::Course(Course::Schedule(schedule.clone()))
            }
            RateProcess::Markov(params) => {
                random(Random::Markov(Markov::new(params.clone(), stream)))
            }
            RateProcess::OrnsteinUhlenbeck(params) => {
                random(Random::OrnsteinUhlenbeck(OrnsteinUhlenbeck::new(params, stream)))
            }
            RateProcess::Trace(params, trace) => RateSource::Grants(Grants::Trace {
                trace: Arc::clone(trace),
                bytes: params.opportunity.get(),
                cursor: Cursor::start(),
            }),
            RateProcess::Lte(params) => {
                RateSource::Grants(Grants::Lte(Box::new(Lte::new(params, stream, end))))
            }
            RateProcess::Wifi(params) => {
                RateSource::Grants(Grants::Wifi(Box::new(Wifi::new(params, stream, end))))
            }
        }
    }
}

/// Returns the table of these parameters.
pub(crate) fn table_of(entries: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    let entries = entries.into_iter();
    Value::Table(entries.map(|(key, text)| (key.to_string(), text)).collect())
}

fn check_rates(schedule: Schedule) -> Result<Schedule> {
    match schedule.max() {
        0 => Err(Error::new("expected a rate above zero in at least one step")),
        max if max > MAX_RATE.as_bps() => {
            Err(Error::not_allowed(Rate::from_bps(max), format!("rates of at most {MAX_RATE}")))
        }
        _ => Ok(schedule),
    }
}

/// Meaning of the second column of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    /// Value of 1 in the column.
    pub unit: f64,
    /// Maximum value, in the base unit.
    pub most: u64,
    /// True if the file repeats.
    pub repeats: bool,
}

/// Reads a file of two columns, and sets or verifies the digest of its content.
pub(crate) fn read_columns(
    name: &str,
    content: &mut Option<String>,
    scale: &Scale,
    read_file: ReadFile<'_>,
) -> Result<Schedule> {
    read_content(name, content, read_file)
        .and_then(|file| file.columns(name, scale))
        .map_err(|error| error.at("csv"))
}

/// Reads a file, and sets or verifies the digest of its content.
fn read_content(
    name: &str,
    named: &mut Option<String>,
    read_file: ReadFile<'_>,
) -> Result<Arc<InputFile>> {
    let file = read_file(name)?;
    file.identify(named, name)?;
    Ok(file)
}
