//! Reads a recorded case and replays it: the link and the order of events
//! are those of `vectors/README.md`.

// Tests read the recorded files; the disciplines do not.
#![allow(clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use aqmlab_aqm::{DropReason, LinkEnv, Queue, QueueConfig};
use aqmlab_core::{Bytes, Ecn, Packet, Rate, Span, Stream, Table, Time, Value};

/// A packet of a recorded arrival.
#[derive(Clone, Debug)]
pub struct Arrival {
    id: u32,
    at: Time,
    flow: u32,
    size: u32,
    ecn: Ecn,
    marked: bool,
    queued_at: Time,
}

impl Packet for Arrival {
    fn size(&self) -> u32 {
        self.size
    }
    fn flow_hash(&self) -> u32 {
        self.flow
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark(&mut self) {
        self.ecn = Ecn::Ce;
        self.marked = true;
    }
    fn arrival(&self) -> Time {
        self.queued_at
    }
    fn set_arrival(&mut self, now: Time) {
        self.queued_at = now;
    }
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outcome {
    verdict: Verdict,
    at: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Delivered,
    Marked,
    Signal,
    Overlimit,
}

/// One recorded case.
pub struct Case {
    pub name: String,
    pub parameters: BTreeMap<String, f64>,
    folder: PathBuf,
    rate: u64,
    random_seed: u64,
}

impl Case {
    /// All cases of an algorithm.
    pub fn all(algorithm: &str) -> Vec<Case> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(algorithm);
        let mut folders: Vec<PathBuf> = std::fs::read_dir(root)
            .expect("the vectors are in the repository")
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir())
            .collect();
        folders.sort();
        folders.into_iter().map(Case::read).collect()
    }

    fn read(folder: PathBuf) -> Case {
        let text = std::fs::read_to_string(folder.join("case.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let parameters = json["parameters"].as_object().unwrap().iter();
        Case {
            name: json["case"].as_str().unwrap().to_string(),
            parameters: parameters
                .filter_map(|(key, value)| Some((key.clone(), value.as_f64()?)))
                .collect(),
            rate: json["link"]["rate_bps"].as_u64().unwrap(),
            random_seed: json["random_seed"].as_u64().unwrap_or(0),
            folder,
        }
    }

    /// A parameter that was given to the reference.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.parameters.get(name).copied()
    }

    fn lines(&self, file: &str) -> Vec<Vec<String>> {
        let bytes = std::fs::read(self.folder.join(file)).unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
        let rows = text.lines().skip(1);
        rows.map(|line| line.split(',').map(str::to_string).collect()).collect()
    }

    fn arrivals(&self) -> Vec<Arrival> {
        let arrival = |row: Vec<String>| Arrival {
            id: row[0].parse().unwrap(),
            at: Time::from_nanos(row[1].parse().unwrap()),
            flow: row[2].parse().unwrap(),
            size: row[3].parse().unwrap(),
            ecn: Ecn::from_bits(row[4].parse().unwrap()),
            marked: false,
            queued_at: Time::ZERO,
        };
        self.lines("arrivals.csv.gz").into_iter().map(arrival).collect()
    }

    fn outcomes(&self) -> Vec<(u32, Outcome)> {
        let outcome = |row: Vec<String>| {
            let verdict = match row[1].as_str() {
                "delivered" => Verdict::Delivered,
                "marked" => Verdict::Marked,
                "dropped_overlimit" => Verdict::Overlimit,
                _ => Verdict::Signal,
            };
            (row[0].parse().unwrap(), Outcome { verdict, at: row[2].parse().unwrap() })
        };
        self.lines("outcomes.csv.gz").into_iter().map(outcome).collect()
    }

    /// Replays the case with a queue of these settings.
    ///
    /// # Errors
    /// A sentence about the first packet that differs.
    pub fn replay(&self, settings: &Table) -> Result<(), String> {
        let config = QueueConfig::read(&Value::Table(settings.clone()))
            .unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let env = LinkEnv {
            rate: Rate::from_bps(self.rate),
            base_rtt: Span::from_millis(100),
            mtu: Bytes::new(1514),
        };
        let queue = Queue::new(config.build(&env), Stream::from_state(self.random_seed));
        let measured = Replay::new(queue, self.rate).run(self.arrivals());
        let expected = self.outcomes();
        let equal = |(a, b): (&(u32, Outcome), &(u32, Outcome))| a == b;
        let same = expected.iter().zip(&measured).take_while(|pair| equal(*pair)).count();
        if same == expected.len() && measured.len() == expected.len() {
            return Ok(());
        }
        Err(format!(
            "  {}: {same} of {} decisions equal, then {:?} instead of {:?}",
            self.name,
            expected.len(),
            measured.get(same),
            expected.get(same),
        ))
    }
}

/// The link of the vectors in front of which the queue stands.
struct Replay {
    queue: Queue<Arrival>,
    nanos_per_byte: u64,
    busy_until: Option<Time>,
    outcomes: Vec<(u32, Outcome)>,
}

impl Replay {
    fn new(queue: Queue<Arrival>, rate: u64) -> Self {
        let nanos_per_byte = 8_000_000_000 / rate;
        Replay { queue, nanos_per_byte, busy_until: None, outcomes: Vec::new() }
    }

    fn run(mut self, arrivals: Vec<Arrival>) -> Vec<(u32, Outcome)> {
        let mut arrivals = arrivals.into_iter().peekable();
        loop {
            let arrival = arrivals.peek().map(|packet| packet.at);
            let wakeup = self.queue.next_wakeup();
            let Some(work) = [self.busy_until, arrival].into_iter().flatten().min() else { break };
            // At one moment: end of a transmission, timer, arrival.
            if self.busy_until.is_some_and(|end| end <= work && wakeup.is_none_or(|w| end <= w)) {
                let now = self.busy_until.take().expect("just seen");
                self.send(now);
            } else if let Some(now) = wakeup.filter(|wakeup| *wakeup <= work) {
                self.queue.on_wakeup(now);
                self.collect(now);
            } else {
                let packet = arrivals.next().expect("just seen");
                self.queue.enqueue(packet, work);
                self.collect(work);
                if self.busy_until.is_none() {
                    self.send(work);
                }
            }
        }
        assert_eq!(self.queue.backlog().packets, 0, "the run goes on until the queue is empty");
        self.queue.assert_conservation("replay");
        self.outcomes
    }

    fn send(&mut self, now: Time) {
        let packet = self.queue.dequeue(now);
        self.collect(now);
        if let Some(packet) = packet {
            let verdict = if packet.marked { Verdict::Marked } else { Verdict::Delivered };
            self.outcomes.push((packet.id, Outcome { verdict, at: now.as_nanos() }));
            let duration = Span::from_nanos(u64::from(packet.size) * self.nanos_per_byte);
            self.busy_until = Some(now + duration);
        }
    }

    fn collect(&mut self, now: Time) {
        let outcomes = &mut self.outcomes;
        self.queue.take_dropped(|packet, reason: DropReason| {
            let verdict = if reason.is_signal() { Verdict::Signal } else { Verdict::Overlimit };
            outcomes.push((packet.id, Outcome { verdict, at: now.as_nanos() }));
        });
    }
}
