//! Propagation delay of a link, constant or variable.

use aqmlab_core::params::{check_range, read_value};
use aqmlab_core::{Error, ParamType, Params, Result, Span, Time, Value, params};

use crate::rate::schedule::{Schedule, Steps};
use crate::rate::{ReadFile, Scale, read_columns, table_of};

params! {
    /// Delay that changes at set times.
    pub struct DelayStepsParams {
        /// Start times and delays: `[["0s", "20ms"], ["50s", "80ms"]]`.
        steps: Steps<Span>, required "0s 20ms, 50s 80ms", source "this program";
        /// True if the steps repeat; the last step then has the duration of the one before.
        repeat: bool = false, source "this program";
    }
}

params! {
    /// File of two columns, time in seconds and delay.
    pub struct DelayCsvParams {
        /// File name; relative to the scenario, then to the working directory.
        csv: String, required "delays.csv", source "this program";
        /// Unit of the second column.
        unit: Span = Span::from_millis(1), in Span::from_nanos(1) => Span::from_secs(1),
            source "this program";
        /// True if the lines repeat; the last line then has the duration of the one before.
        repeat: bool = true, source "this program";
        /// Digest of the file's content, filled in. If given, the file must match it.
        content: Option<String> = None, source "this program";
    }
}

const MAX_DELAY: Span = Span::from_secs(3600);

/// Propagation delay of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum DelayProcess {
    /// Constant delay.
    Constant(Span),
    /// Steps.
    Steps(DelayStepsParams, Schedule),
    /// Steps from a file.
    Csv(DelayCsvParams, Schedule),
}

impl DelayProcess {
    /// Reads the value of `delay`.
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

    /// Returns a value that reads back as the same delay.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            DelayProcess::Constant(delay) => delay.to_text().into(),
            DelayProcess::Steps(params, _) => table_of(params.entries()),
            DelayProcess::Csv(params, _) => table_of(params.entries()),
        }
    }

    /// Returns the mean over a run of this length.
    pub fn mean(&self, duration: Span) -> Span {
        match self {
            DelayProcess::Constant(delay) => *delay,
            DelayProcess::Steps(_, schedule) | DelayProcess::Csv(_, schedule) => {
                Span::from_nanos(schedule.mean(duration))
            }
        }
    }

    /// Returns the delay of a packet that leaves at `time`.
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
