//! Types of flow and change keys with special forms.

use aqmlab_core::params::read_value;
use aqmlab_core::{Error, ParamType, Result, Span, Value, params};

/// Names of links, in path order. A single name may be written without a list.
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

/// Start times of the flows of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Start {
    /// All flows at this time.
    At(Span),
    /// All flows at a uniform random time between these two, drawn once for the group.
    Uniform(Span, Span),
    /// Each flow at a uniform random time between these two.
    Each(Span, Span),
}

/// Time over which the flows of a group start by default.
const SPREAD: Span = Span::from_secs(1);

impl Start {
    /// Default of a group that begins at `begin`. Flows that start together over separate queues
    /// are copies of one flow: several flows start within `SPREAD`, each at a time of its own.
    pub fn spread(begin: Span, flows: u64) -> Self {
        match flows {
            1 => Start::At(begin),
            _ => Start::Each(begin, begin + SPREAD),
        }
    }

    /// Returns the earliest and the latest possible time.
    pub fn range(self) -> [Span; 2] {
        match self {
            Start::At(start) => [start; 2],
            Start::Uniform(low, high) | Start::Each(low, high) => [low, high],
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
    /// Route change of a group of flows: a table of the list `reroutes`.
    pub struct RerouteParams {
        /// Time of the change.
        at: Span, required "10s", source "this program";
        /// New links from the senders to the receivers; `none`: unchanged.
        path: Option<LinkNames> = None, [left out], source "this program";
        /// New links from the receivers to the senders; `none`: unchanged.
        return_path: Option<LinkNames> = None, [left out], source "this program";
    }
}

params! {
    /// Change during the run: a table of the list `changes`.
    pub struct ChangeParams {
        /// Time of the change.
        at: Span, required "10s", source "this program";
        /// Key to change: `links.NAME.rate`, `.delay`, `.loss`, `.queue` or a key of the queue;
        /// `flows.NAME`, a new group; `flows.NAME.active`; `flows.NAME.transport.KEY`, of one flow
        /// `flows.NAME.INDEX.transport.KEY`.
        key: String, required "links.bottleneck.rate", source "this program";
        /// New value.
        value: Value, required "5mbit", source "this program";
        /// True to replace the queue by a new one, even of the same discipline.
        replace: bool = false, [left out], source "tc(8), qdisc replace";
    }
}
