//! Keys of flows and of changes whose values have forms of their own.

use aqmlab_core::params::read_value;
use aqmlab_core::{Error, ParamType, Result, Span, Value, params};

/// Names of links, in the order in which packets pass them. A single one may stand alone.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkNames(pub Vec<String>);

impl ParamType for LinkNames {
    const KIND: &'static str = "links";
    fn allowed() -> String {
        "the name of a link, or a list of link names".into()
    }
    fn read(value: &Value) -> Option<Self> {
        let name = |value: &Value| value.as_text().ok().map(str::to_string);
        match value {
            Value::List(names) => names.iter().map(name).collect::<Option<_>>().map(LinkNames),
            one => name(one).map(|name| LinkNames(vec![name])),
        }
    }
    fn to_text(&self) -> String {
        self.to_value().to_string()
    }
    fn to_value(&self) -> Value {
        Value::List(self.0.iter().map(|name| name.as_str().into()).collect())
    }
}

/// When the flows of a group begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Start {
    /// All at this time.
    At(Span),
    /// All at a time uniform between these two, drawn once for the group.
    Uniform(Span, Span),
    /// Each at a time of its own, uniform between these two.
    Each(Span, Span),
}

/// Time over which the flows of a group start by default.
const SPREAD: Span = Span::from_secs(1);

impl Start {
    /// Default of a group that begins at `begin`. Flows that start together over separate queues
    /// are copies of one flow: several flows start within [`SPREAD`], each at a time of its own.
    pub fn spread(begin: Span, flows: u64) -> Self {
        match flows {
            1 => Start::At(begin),
            _ => Start::Each(begin, begin + SPREAD),
        }
    }

    /// The earliest time that it may be.
    pub fn earliest(self) -> Span {
        match self {
            Start::At(start) | Start::Uniform(start, _) | Start::Each(start, _) => start,
        }
    }

    /// The latest time that it may be.
    pub fn latest(self) -> Span {
        match self {
            Start::At(start) | Start::Uniform(_, start) | Start::Each(_, start) => start,
        }
    }
}

impl ParamType for Start {
    const KIND: &'static str = "time";
    fn allowed() -> String {
        format!("{}, {{ uniform = [\"0s\", \"650ms\"] }} for a random time", Span::allowed())
    }
    fn read(value: &Value) -> Option<Self> {
        Self::parse(value).ok()
    }
    fn parse(value: &Value) -> Result<Self> {
        let Value::Table(table) = value else { return read_value(value).map(Start::At) };
        table.only(["uniform", "each"])?;
        let kinds = [("uniform", Start::Uniform as fn(_, _) -> _), ("each", Start::Each)];
        let mut given = kinds.iter().filter_map(|(key, of)| Some((key, of, table.get(key)?)));
        match (given.next(), given.next()) {
            (Some((key, of, Value::List(ends))), None) if ends.len() == 2 => {
                let end = |number: usize| -> Result<Span> {
                    read_value(&ends[number]).map_err(|error: Error| error.at(key))
                };
                let (low, high) = (end(0)?, end(1)?);
                if low > high {
                    let error = Error::new("the first time is later than the second");
                    return Err(error.given(format!("{low}, {high}")).at(key));
                }
                Ok(of(low, high))
            }
            _ => Err(Error::new("expected two times: { uniform = [\"0s\", \"650ms\"] }")
                .hint("or { each = [\"0s\", \"650ms\"] }: a time of its own for each flow")),
        }
    }
    fn to_text(&self) -> String {
        self.to_value().to_string()
    }
    fn to_value(&self) -> Value {
        let between = |name: &str, low: &Span, high: &Span| {
            let ends = vec![low.to_string().into(), high.to_string().into()];
            Value::Table([(name.to_string(), Value::List(ends))].into_iter().collect())
        };
        match self {
            Start::At(start) => start.to_string().into(),
            Start::Uniform(low, high) => between("uniform", low, high),
            Start::Each(low, high) => between("each", low, high),
        }
    }
}

params! {
    /// Another route for a group of flows during the run: a table of the list `reroutes`.
    pub struct RerouteParams {
        /// Time of the change.
        at: Span, required "10s", source "this program";
        /// The links from the senders to the receivers from then on; `none`: as before.
        path: Option<LinkNames> = None, [left out], source "this program";
        /// The links from the receivers to the senders from then on; `none`: as before.
        return_path: Option<LinkNames> = None, [left out], source "this program";
    }
}

params! {
    /// A change during the run: a table of the list `changes`.
    pub struct ChangeParams {
        /// Time of the change.
        at: Span, required "10s", source "this program";
        /// Key that changes: `links.NAME.rate`, `.delay`, `.loss`, `.queue` or a key of the
        /// queue; `flows.NAME`, a new group; `flows.NAME.active`.
        key: String, required "links.bottleneck.rate", source "this program";
        /// Value from then on.
        value: Value, required "5mbit", source "this program";
        /// Whether a new queue takes the place of the old one, also one of the same discipline.
        replace: bool = false, [left out], source "tc(8), qdisc replace";
    }
}
