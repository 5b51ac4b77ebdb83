//! Reads the archive of recorded cases. Its format is described where it is
//! written, in `python/aqmlab/conformance/archive.py`.

use std::fs;
use std::path::Path;

use aqmlab_conformance::queues::{Arrival, QueueOutcome, Surroundings};
use aqmlab_core::{Bytes, Ecn, Rate, Time, Value};
use serde_json::Value as Json;

/// Reasons of drops that are called something else in the records, as in
/// `python/aqmlab/conformance/replay.py`.
const REASONS: &[(&str, &str)] = &[
    ("red_early", "red_prob"),
    ("flow_limit", "overlimit_depth"),
    ("blue", "cobalt"),
    ("pi2", "congested"),
    ("step", "congested"),
];
const VERDICTS: [&str; 5] =
    ["delivered", "marked", "dropped_enqueue", "dropped_dequeue", "dropped_overlimit"];
/// `mark`: when a packet was marked.
const ON_ARRIVAL: u8 = 1;
const AT_DECISION: u8 = 2;

/// A run of a reference implementation.
pub struct Case {
    pub name: String,
    pub queue: Value,
    pub surroundings: Surroundings,
    pub arrivals: Vec<Arrival>,
    pub outcomes: Vec<Recorded>,
}

/// QueueOutcome of a packet. Times in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    pub id: u32,
    pub verdict: &'static str,
    pub time: i64,
    pub sojourn: i64,
    pub marked: Option<i64>,
    pub reason: Option<String>,
}

impl Recorded {
    /// Converts our outcome to the terms of the records.
    pub fn of(outcome: &QueueOutcome) -> Self {
        let reason = outcome.reason.map(|reason| reason.name());
        let theirs =
            |ours| REASONS.iter().find(|(name, _)| *name == ours).map_or(ours, |pair| pair.1);
        Recorded {
            id: outcome.id,
            verdict: outcome.verdict.name(),
            time: outcome.time.as_nanos() as i64,
            sojourn: outcome.sojourn.as_nanos() as i64,
            marked: outcome.marked.map(|time| time.as_nanos() as i64),
            reason: reason.map(theirs).map(str::to_string),
        }
    }
}

/// All cases, to be unpacked one by one.
pub struct Archive {
    cases: Vec<Json>,
    reasons: Vec<String>,
    /// Number of packets in each arrival pattern.
    lengths: Vec<usize>,
    arrivals: Columns,
    outcomes: Columns,
}

impl Archive {
    /// # Panics
    /// Panics if the archive is incomplete: it is part of the repository.
    pub fn read() -> Self {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/aqmlab/conformance/recorded");
        let cases = bytes(&folder.join("cases.json"));
        let mut content: Json = serde_json::from_slice(&cases).expect("JSON");
        let lengths: Vec<usize> = numbers(&content["arrivals"]);
        let reasons = content["reasons"].as_array().unwrap().iter().map(text).collect();
        let Json::Array(cases) = content["cases"].take() else { panic!("no list of cases") };
        let decided = cases.iter().map(|case| lengths[place(case)]).sum();
        Archive {
            arrivals: Columns::read(
                &folder.join("arrivals.zlib"),
                lengths.iter().sum(),
                &[8, 4, 4, 1],
            ),
            outcomes: Columns::read(&folder.join("outcomes.zlib"), decided, &[1, 4, 8, 1, 1]),
            cases,
            reasons,
            lengths,
        }
    }
    pub fn len(&self) -> usize {
        self.cases.len()
    }
    /// The place of a case, `algorithm/name`.
    pub fn named(&self, name: &str) -> usize {
        self.cases.iter().position(|case| case_name(case) == name).expect("a recorded case")
    }
    /// What a case is a case of, here.
    pub fn discipline(&self, index: usize) -> String {
        text(&self.cases[index]["queue"]["discipline"])
    }

    pub fn case(&self, index: usize) -> Case {
        let about = &self.cases[index];
        let number = |key: &str| about[key].as_u64();
        let surroundings = Surroundings {
            rate: Rate::from_bps(number("rate_bps").unwrap()),
            nanos_per_byte: number("ns_per_byte").unwrap(),
            mtu: Bytes::new(number("mtu").unwrap()),
            random_seed: number("random_seed").unwrap_or(0),
        };
        let arrivals = self.arrivals_of(place(about));
        Case {
            name: case_name(about),
            queue: value(&about["queue"]),
            outcomes: self.outcomes_of(index, &arrivals, surroundings.nanos_per_byte as i64),
            surroundings,
            arrivals,
        }
    }

    fn arrivals_of(&self, pattern: usize) -> Vec<Arrival> {
        let first: usize = self.lengths[..pattern].iter().sum();
        let mut time = 0;
        (first..first + self.lengths[pattern])
            .map(|row| {
                time += self.arrivals.signed(0, row);
                Arrival {
                    time: Time::from_nanos(time as u64),
                    flow: self.arrivals.bits(1, row) as u32,
                    size: self.arrivals.bits(2, row) as u32,
                    ecn: Ecn::from_bits(self.arrivals.bits(3, row) as u8),
                }
            })
            .collect()
    }

    fn outcomes_of(&self, case: usize, arrivals: &[Arrival], ns_per_byte: i64) -> Vec<Recorded> {
        let before = self.cases[..case].iter().map(|case| self.lengths[place(case)]);
        let first: usize = before.sum();
        let rows: Vec<Row> =
            (first..first + arrivals.len()).map(|row| Row::read(&self.outcomes, row)).collect();
        let ids = ids(&rows);
        let expected = expected_times(&rows, &ids, arrivals, ns_per_byte);
        let each = rows.iter().zip(&ids).zip(&expected);
        each.map(|((row, id), expected)| {
            let arrival = arrivals[*id].time.as_nanos() as i64;
            let time = expected + row.lag;
            Recorded {
                id: *id as u32,
                verdict: VERDICTS[usize::from(row.verdict)],
                time,
                sojourn: time - arrival,
                marked: match row.mark {
                    ON_ARRIVAL => Some(arrival),
                    AT_DECISION => Some(time),
                    _ => None,
                },
                reason: (row.reason > 0).then(|| self.reasons[usize::from(row.reason) - 1].clone()),
            }
        })
        .collect()
    }
}

/// A decision as it is kept.
struct Row {
    verdict: u8,
    step: i64,
    lag: i64,
    mark: u8,
    reason: u8,
}

impl Row {
    fn read(columns: &Columns, row: usize) -> Row {
        Row {
            verdict: columns.bits(0, row) as u8,
            step: columns.signed(1, row),
            lag: columns.signed(2, row),
            mark: columns.bits(3, row) as u8,
            reason: columns.bits(4, row) as u8,
        }
    }
    fn is_sent(&self) -> bool {
        matches!(VERDICTS[usize::from(self.verdict)], "delivered" | "marked")
    }
    fn is_taken_out(&self) -> bool {
        self.is_sent() || VERDICTS[usize::from(self.verdict)] == "dropped_dequeue"
    }
}

/// The packets: each a step from the one before that was taken out, or turned
/// away, like it.
fn ids(rows: &[Row]) -> Vec<usize> {
    let mut last = [0_i64; 2];
    let id = |row: &Row| {
        let last = &mut last[usize::from(row.is_taken_out())];
        *last += row.step;
        usize::try_from(*last).expect("a packet")
    };
    rows.iter().map(id).collect()
}

/// When a decision is expected: for a packet that is sent, at the end of the
/// transmission before, but not before it came; for one dropped while it is
/// taken out, when the next is sent; for others, when they came.
fn expected_times(rows: &[Row], ids: &[usize], arrivals: &[Arrival], ns_per_byte: i64) -> Vec<i64> {
    let arrival = |id: usize| arrivals[id].time.as_nanos() as i64;
    let mut free = i64::MIN;
    let mut times: Vec<Option<i64>> = Vec::with_capacity(rows.len());
    for (row, id) in rows.iter().zip(ids) {
        times.push(row.is_sent().then(|| {
            let start = free.max(arrival(*id));
            free = start + i64::from(arrivals[*id].size) * ns_per_byte;
            start
        }));
    }
    let mut next_sent = None;
    for ((row, id), time) in rows.iter().zip(ids).zip(&mut times).rev() {
        next_sent = time.or(next_sent);
        if !row.is_sent() {
            *time = next_sent.filter(|_| row.is_taken_out()).or(Some(arrival(*id)));
        }
    }
    times.into_iter().flatten().collect()
}

/// Columns of numbers, as planes of bytes.
struct Columns {
    content: Vec<u8>,
    rows: usize,
    /// Offset of each column, and the width of its numbers in bytes.
    places: Vec<(usize, usize)>,
}

impl Columns {
    fn read(file: &Path, rows: usize, widths: &[usize]) -> Columns {
        let content = miniz_oxide::inflate::decompress_to_vec_zlib(&bytes(file)).expect("zlib");
        let mut at = 0;
        let mut place = |width: &usize| {
            let place = (at, *width);
            at += rows * width;
            place
        };
        let places: Vec<_> = widths.iter().map(&mut place).collect();
        assert_eq!(content.len(), at, "{}", file.display());
        Columns { content, rows, places }
    }
    fn bits(&self, column: usize, row: usize) -> u64 {
        let (start, width) = self.places[column];
        let byte = |plane| u64::from(self.content[start + plane * self.rows + row]);
        (0..width).fold(0, |number, plane| number | byte(plane) << (8 * plane))
    }
    fn signed(&self, column: usize, row: usize) -> i64 {
        let unused = 64 - 8 * self.places[column].1;
        (self.bits(column, row) << unused) as i64 >> unused
    }
}

#[expect(clippy::disallowed_methods, reason = "the rule is for the disciplines, not their tests")]
fn bytes(file: &Path) -> Vec<u8> {
    fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn place(case: &Json) -> usize {
    case["arrivals"].as_u64().expect("the number of a pattern") as usize
}

fn case_name(case: &Json) -> String {
    format!("{}/{}", text(&case["algorithm"]), text(&case["name"]))
}

fn text(json: &Json) -> String {
    json.as_str().expect("text").to_string()
}

fn numbers(json: &Json) -> Vec<usize> {
    let list = json.as_array().expect("a list").iter();
    list.map(|number| number.as_u64().expect("a number") as usize).collect()
}

fn value(json: &Json) -> Value {
    match json {
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::Integer(whole),
            None => Value::Float(number.as_f64().expect("a number")),
        },
        Json::String(text) => Value::Text(text.clone()),
        Json::Object(table) => {
            Value::Table(table.iter().map(|(key, json)| (key.clone(), value(json))).collect())
        }
        other => panic!("{other} is no setting"),
    }
}
