//! Commands of a page.
//!
//! The first line of a command is its name; runs are identified by a number, their slot.
//!
//! | command | lines after it | answer |
//! |---|---|---|
//! | `catalogue` | | components and parameters, JSON |
//! | `open` | slot, watched link, TOML | the scenario's digest and names, JSON |
//! | `go` | slot, time in ns, interval in ns | [samples](Lab::go), JSON |
//! | `next` | slot | time in seconds of the next packet event at the watched link, JSON |
//! | `events` | slot | packet events, eight numbers each |
//! | `waiting` | slot | packets in the queue: flow, group, bytes, arrival |
//! | `set` | slot, key, value | the time of the change in ns, JSON |
//! | `replace` | slot, key, value | the time of the change in ns, JSON; the queue restarts with its
//! packets |
//! | `rewind` | slot, time in ns | nothing |
//! | `fork` | slot | nothing: pending changes are removed |
//! | `save` | slot, time in ns | TOML of the run until then, and digests, JSON |
//! | `check` | | see [`check`](crate::check) |
//!
//! Errors are answered by `{"error": ...}`.

use aqmlab_core::{Error, Result, Time};
use aqmlab_sim::network::probe::{PacketEvent, PacketRecord};
use aqmlab_sim::network::series::Subject;
use aqmlab_sim::scenario::parse_value;
use aqmlab_sim::workload::app::Direction;
use aqmlab_sim::workload::quantities::Quantity;
use aqmlab_sim::{Outside, Run, Scenario, run};

use crate::{catalogue, check, digest, json};

/// Run of the page.
struct Slot {
    run: Run,
    link: usize,
    /// Packet events since the last request.
    events: Vec<PacketEvent>,
    /// Packets in the queue, in order of arrival.
    waiting: Vec<PacketRecord>,
    /// Copies of the run with the packets in the queue, at multiples of an interval.
    past: Vec<(Run, Vec<PacketRecord>)>,
    /// Interval between snapshots in nanoseconds. It doubles when there are [`MOST`].
    each: u64,
    /// Scores of the last [`SECOND`] until the next sample.
    scores: Vec<String>,
}

/// Duration of scores in nanoseconds; snapshots are at multiples of half of it.
const SECOND: u64 = 1_000_000_000;

/// Limit of snapshots of a run.
const MOST: usize = 64;

/// Runs of a page.
#[derive(Default)]
pub struct Lab {
    slots: Vec<Option<Slot>>,
}

impl Lab {
    /// Answers a command.
    pub fn answer(&mut self, command: &str) -> Vec<u8> {
        self.try_answer(command).unwrap_or_else(|error| {
            json::object([("error", json::text(&error.to_string()))]).into_bytes()
        })
    }

    fn try_answer(&mut self, command: &str) -> Result<Vec<u8>> {
        let (name, rest) = command.split_once('\n').unwrap_or((command, ""));
        match name {
            "catalogue" => return Ok(catalogue::all().into_bytes()),
            "check" => return check::all().map(String::into_bytes),
            "open" => return self.open(rest).map(String::into_bytes),
            _ => {}
        }
        let (slot, rest) = rest.split_once('\n').unwrap_or((rest, ""));
        let slot = slot.parse::<usize>().ok().and_then(|slot| self.slots.get_mut(slot)?.as_mut());
        let slot = slot.ok_or_else(|| Error::new("there is no such run"))?;
        let (first, second) = rest.split_once('\n').unwrap_or((rest, ""));
        match name {
            "go" => slot.go(time(first)?, time(second)?.as_nanos()).map(String::into_bytes),
            "next" => slot.next().map(String::into_bytes),
            "events" => Ok(slot.take_events()),
            "waiting" => Ok(slot.waiting()),
            "set" | "replace" => {
                let (value, endpoints) = (parse_value(second), aqmlab_quic::endpoints()?);
                let outside = Outside::endpoints(&endpoints);
                let at = slot.run.set(first, &value, name == "replace", outside);
                slot.forget_later();
                Ok(at?.as_nanos().to_string().into_bytes())
            }
            "rewind" => slot.rewind(time(first)?).map(|()| Vec::new()),
            "fork" => {
                slot.run.drop_later_changes();
                slot.forget_later();
                Ok(Vec::new())
            }
            "save" => slot.save(time(first)?).map(String::into_bytes),
            other => Err(Error::new(format!("there is no command `{other}`"))),
        }
    }

    fn open(&mut self, rest: &str) -> Result<String> {
        let mut parts = rest.splitn(3, '\n');
        let mut number = || parts.next().and_then(|text| text.parse::<usize>().ok()).unwrap_or(0);
        let (place, link) = (number(), number());
        let text = parts.next().unwrap_or("");
        let scenario = parse(text, "scenario")?;
        let slot = Slot::new(Run::new(scenario, 0), link)?;
        let answer = slot.describe();
        if self.slots.len() <= place {
            self.slots.resize_with(place + 1, || None);
        }
        self.slots[place] = Some(slot);
        Ok(answer)
    }
}

/// Reads a scenario, whose endpoints may be those of QUIC libraries.
///
/// # Errors
/// Returns an error if the scenario is not valid.
pub fn parse(toml: &str, name: &str) -> Result<Scenario> {
    Scenario::parse_with(toml, name, &[], Outside::endpoints(&aqmlab_quic::endpoints()?))
}

fn time(text: &str) -> Result<Time> {
    let number = text.parse::<u64>();
    number.map(Time::from_nanos).map_err(|_| Error::new("expected nanoseconds").given(text))
}

fn seconds(time: Time) -> f64 {
    time.as_nanos() as f64 * 1e-9
}

fn stopped(error: impl std::fmt::Display) -> Error {
    Error::new(error.to_string())
}

impl Slot {
    fn new(mut run: Run, link: usize) -> Result<Self> {
        if link >= run.scenario().links.len() {
            return Err(Error::new("there is no such link"));
        }
        run.watch_packets(Some(link));
        let (events, waiting, past, scores) = Default::default();
        Ok(Slot { run, link, events, waiting, past, each: SECOND / 2, scores })
    }

    fn describe(&self) -> String {
        let scenario = self.run.scenario();
        let links = scenario.links.iter().map(|link| json::text(&link.name));
        let flows = scenario.flows.iter().map(|flows| json::text(&flows.name));
        let workloads = scenario.flows.iter().map(|flows| json::text(flows.workload.name()));
        json::object([
            ("digest", json::text(&digest::sha256(scenario.to_json().as_bytes()))),
            ("links", json::list(links)),
            ("flows", json::list(flows)),
            ("workloads", json::list(workloads)),
            ("bottleneck", scenario.bottleneck.to_string()),
            ("duration", json::number(scenario.duration.as_secs_f64())),
        ])
    }

    /// Runs to a time, and returns samples at the multiples of an interval.
    fn go(&mut self, until: Time, interval: u64) -> Result<String> {
        let interval = interval.max(100_000);
        let mut samples = Vec::new();
        loop {
            let next = (self.run.time().as_nanos() / interval + 1) * interval;
            if !self.advance(Time::from_nanos(next).min(until))? {
                break; // The scenario has ended, or the time is reached.
            }
            if self.run.time().as_nanos().is_multiple_of(interval) {
                samples.push(self.sample());
            }
        }
        Ok(json::list(samples))
    }

    /// Runs to a time; takes scores and stores snapshots. Returns false if it is there already.
    fn advance(&mut self, to: Time) -> Result<bool> {
        let begin = self.run.time();
        while self.run.time() < to {
            let before = self.run.time();
            let half = SECOND / 2;
            let next = Time::from_nanos((before.as_nanos() / half + 1) * half);
            self.run.advance(next.min(to)).map_err(stopped)?;
            self.keep_events();
            if self.run.time() == before {
                break;
            }
            if self.run.time() != next {
                continue;
            }
            if next.as_nanos().is_multiple_of(SECOND) {
                self.take_scores();
            }
            let is_new = self.past.last().is_none_or(|(last, _)| last.time() < next)
                && next.as_nanos().is_multiple_of(self.each);
            // A copy that repeats the run costs as much as going back without it.
            if is_new && self.run.is_cloneable() {
                self.past.push((self.run.fork()?, self.waiting.clone()));
                if self.past.len() == MOST {
                    self.each *= 2;
                    let each = self.each;
                    self.past.retain(|(past, _)| past.time().as_nanos().is_multiple_of(each));
                }
            }
        }
        Ok(self.run.time() > begin)
    }

    /// Returns the time of the next packet event at the link, or of the end.
    fn next(&self) -> Result<String> {
        let mut run = self.run.fork()?;
        while run.take_events().is_empty() && run.step().map_err(stopped)?.is_some() {}
        Ok(json::number(seconds(run.time())))
    }

    fn rewind(&mut self, to: Time) -> Result<()> {
        let past = self.past.iter().rfind(|(past, _)| past.time() <= to);
        let time = past.map_or(Time::ZERO, |(past, _)| past.time());
        self.run.rewind(time, past.map(|(past, _)| past)).map_err(stopped)?;
        self.waiting = past.map(|(_, waiting)| waiting.clone()).unwrap_or_default();
        self.advance(to)?;
        self.events.clear();
        self.scores.clear();
        Ok(())
    }

    /// Removes the copies after the present, which later changes make wrong.
    fn forget_later(&mut self) {
        let now = self.run.time();
        self.past.retain(|(past, _)| past.time() <= now);
    }

    /// Stores packet events, and updates the packets in the queue.
    fn keep_events(&mut self) {
        for event in self.run.take_events() {
            let packet = event.packet;
            let same = |other: &PacketRecord| {
                (other.flow, other.arrival, other.is_ack)
                    == (packet.flow, packet.arrival, packet.is_ack)
            };
            if event.arrives {
                self.waiting.push(packet);
            } else if let Some(place) = self.waiting.iter().position(same) {
                self.waiting.remove(place);
            }
            self.events.push(event);
        }
    }

    /// Stores the scores of each group in the last second along its path, as JSON.
    fn take_scores(&mut self) {
        self.scores.clear();
        for (group, scores) in self.run.take_scores().iter().enumerate() {
            let forward =
                |scored: &&(Quantity, f64)| scored.0.direction != Some(Direction::Backward);
            for (quantity, mean) in scores.iter().filter(forward) {
                let name = json::text(quantity.name);
                self.scores.push(json::list([group.to_string(), name, json::number(*mean)]));
            }
        }
    }

    /// Returns the current state: for the link, counters and the state of its discipline; for each
    /// active flow, its group, window, round-trip time and delivered bytes; for each group, the
    /// number of started items, number and sum of each of their times in seconds, and every second
    /// its scores.
    fn sample(&mut self) -> String {
        let mut link = Vec::new();
        let mut flows: Vec<(u32, [f64; 3])> = Vec::new();
        self.run.observe(&mut |subject, name, value| match subject {
            Subject::Link(index) if index as usize == self.link => {
                link.push((name, json::number(value)));
            }
            Subject::Flow(index) => {
                if flows.last().is_none_or(|(last, _)| *last != index) {
                    flows.push((index, [f64::NAN; 3]));
                }
                let place = match name {
                    "cwnd_bytes" => 0,
                    "smoothed_rtt_s" => 1,
                    "delivered_bytes" => 2,
                    _ => return,
                };
                if let Some((_, values)) = flows.last_mut() {
                    values[place] = value;
                }
            }
            _ => {}
        });
        let activities = self.run.activities();
        let started = activities.iter().map(|activity| activity.started.to_string());
        let times = activities.iter().enumerate().flat_map(|(group, activity)| {
            activity.times.iter().filter(|(quantity, _)| quantity.direction.is_none()).map(
                move |(quantity, times)| {
                    let (count, sum) = times.total();
                    let [group, count] = [group.to_string(), count.to_string()];
                    json::list([group, json::text(quantity.name), count, json::number(sum)])
                },
            )
        });
        let views: Vec<_> = self.run.flows().collect();
        let flows = flows.into_iter().map(|(index, values)| {
            let group = f64::from(views[index as usize].group);
            let numbers = [f64::from(index), group, values[0], values[1], values[2]];
            json::list(numbers.map(json::number))
        });
        json::object([
            ("t", json::number(seconds(self.run.time()))),
            ("link", json::object(link)),
            ("flows", json::list(flows)),
            ("delivered", json::list(self.run.delivered().iter().map(u64::to_string))),
            ("started", json::list(started)),
            ("times", json::list(times)),
            ("scores", json::list(std::mem::take(&mut self.scores))),
        ])
    }

    /// Returns eight numbers for each event: time, arrival, flow, group, bytes, kind (0 arrived, 1
    /// left, 2 dropped), number of the reason, and 1 for a mark plus 2 for an acknowledgement.
    fn take_events(&mut self) -> Vec<u8> {
        let groups: Vec<u32> = self.run.flows().map(|view| view.group).collect();
        let events = std::mem::take(&mut self.events);
        let numbers = events.iter().flat_map(|PacketEvent { arrives, packet }| {
            let (what, reason) = match (arrives, packet.dropped) {
                (true, _) => (0, 0),
                (false, None) => (1, 0),
                (false, Some(reason)) => (2, reason as u32),
            };
            let flags = u32::from(packet.ce) + 2 * u32::from(packet.is_ack);
            [
                seconds(packet.end),
                seconds(packet.arrival),
                f64::from(packet.flow),
                f64::from(groups[packet.flow as usize]),
                f64::from(packet.size),
                f64::from(what),
                f64::from(reason),
                f64::from(flags),
            ]
        });
        numbers.flat_map(f64::to_le_bytes).collect()
    }

    /// Returns four numbers for each packet in the queue.
    fn waiting(&self) -> Vec<u8> {
        let groups: Vec<u32> = self.run.flows().map(|view| view.group).collect();
        let numbers = self.waiting.iter().flat_map(|packet| {
            let group = groups[packet.flow as usize];
            let arrival = seconds(packet.arrival);
            [f64::from(packet.flow), f64::from(group), f64::from(packet.size), arrival]
        });
        numbers.flat_map(f64::to_le_bytes).collect()
    }

    /// Returns the run up to a time as a scenario, with its results.
    fn save(&self, until: Time) -> Result<String> {
        let until = until - Time::ZERO;
        let mut scenario = self.run.scenario().without_changes_after(until);
        scenario.duration = until.max(aqmlab_core::Span::from_millis(1));
        let toml = scenario.to_toml();
        let scenario = parse(&toml, "saved")?;
        let result = run(&scenario, 0);
        Ok(json::object([
            ("toml", json::text(&toml)),
            ("scenario", json::text(&digest::sha256(scenario.to_json().as_bytes()))),
            ("result", json::text(&format!("{:016x}", result.digest()))),
        ]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENE: &str = "duration = \"60s\"\n[links.down]\nrate = \"10mbit\"\nqueue = \"codel\"\n\
         [links.up]\nrate = \"100mbit\"\n[flows.a]\ncount = 2\npath = [\"down\"]\n\
         return_path = [\"up\"]\n";

    fn text(lab: &mut Lab, command: &str) -> String {
        String::from_utf8(lab.answer(command)).unwrap()
    }

    #[test]
    fn a_page_can_open_go_on_change_go_back_and_save() {
        let mut lab = Lab::default();
        assert!(text(&mut lab, &format!("open\n0\n0\n{SCENE}")).contains("\"digest\":\""));
        let samples = text(&mut lab, "go\n0\n2000000000\n20000000");
        assert_eq!(samples.matches("\"t\":").count(), 100, "{samples}");
        assert!(lab.answer("events\n0").len() > 1000 * 64);
        assert!(lab.answer("events\n0").is_empty());
        let waiting = lab.answer("waiting\n0");
        assert_eq!(text(&mut lab, "set\n0\nlinks.down.rate\n\"5mbit\""), "2000000000");
        assert!(text(&mut lab, "set\n0\nqueue.traget\n1").contains("\"error\""));
        assert!(text(&mut lab, "set\n0\nqueue.variant\n\"linux\"").contains("`replace`"));
        assert_eq!(text(&mut lab, "replace\n0\nqueue.variant\n\"linux\""), "2000000000");
        text(&mut lab, "go\n0\n4000000000\n20000000");
        let saved = text(&mut lab, "save\n0\n4000000000");
        assert!(saved.contains("[[changes]]"), "{saved}");
        text(&mut lab, "rewind\n0\n2000000000");
        assert_eq!(lab.answer("waiting\n0"), waiting, "the same packets are in the queue");
        text(&mut lab, "fork\n0");
        assert!(!text(&mut lab, "save\n0\n1000000000").contains("[[changes]]"));
    }

    /// The packets that entered and did not leave are those the discipline reports.
    #[test]
    fn the_packets_in_the_queue_are_those_that_the_discipline_has() {
        for queue in ["droptail", "fq_codel", "choke", "sfq", "red"] {
            let mut lab = Lab::default();
            text(&mut lab, &format!("open\n0\n0\n{}", SCENE.replace("codel", queue)));
            for step in 1..20 {
                text(&mut lab, &format!("go\n0\n{}\n20000000", step * 137_000_000_u64));
                let next: f64 = text(&mut lab, "next\n0").parse().unwrap();
                let next = (next * 1e9).round() as u64 + 1;
                lab.answer("events\n0");
                let sample = text(&mut lab, &format!("go\n0\n{next}\n{next}"));
                assert!(!lab.answer("events\n0").is_empty());
                let backlog = sample.split("\"backlog_packets\":").nth(1).unwrap();
                let backlog: usize = backlog.split(',').next().unwrap().parse().unwrap();
                assert_eq!(lab.answer("waiting\n0").len() / 32, backlog, "{queue}");
            }
        }
    }

    /// Scores are of whole seconds and do not depend on the times of commands.
    #[test]
    fn each_second_has_the_scores_of_its_applications() {
        let mut lab = Lab::default();
        let call = "[flows.call]\nworkload = { kind = \"voip\", silence = \"0s\" }\n\
                    path = [\"down\"]\nreturn_path = [\"up\"]\n";
        assert!(
            text(&mut lab, &format!("open\n0\n0\n{SCENE}{call}"))
                .contains("\"workloads\":[\"bulk\",\"voip\"]")
        );
        let scores = |samples: String| -> Vec<String> {
            let parts = samples.split("\"scores\":[").skip(1);
            let scored = parts.enumerate().filter(|(_, rest)| !rest.starts_with(']'));
            scored
                .map(|(place, rest)| format!("{place} {}", rest.split('}').next().unwrap()))
                .collect()
        };
        let whole = text(&mut lab, "go\n0\n5000000000\n20000000");
        assert!(whole.contains("[0,\"startup\",2,0."), "{whole}");
        let whole = scores(whole);
        let seconds = [49, 99, 149, 199, 249];
        assert_eq!(whole.len(), seconds.len(), "{whole:?}");
        for (score, second) in whole.iter().zip(seconds) {
            assert!(score.starts_with(&format!("{second} [1,\"mos\",")), "{score}");
        }
        // From the start: there are no snapshots of runs of QUIC, and few of long ones.
        lab.slots[0].as_mut().unwrap().past.clear();
        text(&mut lab, "rewind\n0\n1013000000");
        text(&mut lab, "next\n0");
        let mut again = scores(text(&mut lab, "go\n0\n2993000000\n20000000"));
        assert_eq!(again.len(), 1);
        again.extend(scores(text(&mut lab, "go\n0\n5000000000\n20000000")));
        let values = |scores: &[String]| -> Vec<String> {
            scores.iter().map(|score| score.split_once(' ').unwrap().1.to_string()).collect()
        };
        assert_eq!(values(&again), values(&whole)[1..]);
    }

    #[test]
    fn whatever_is_wrong_is_an_answer() {
        let mut lab = Lab::default();
        for command in ["", "go\n0\n1\n1", "open\n0\n9\n[links", "nothing\n0", "open\n0\n7\n"] {
            assert!(text(&mut lab, command).starts_with("{\"error\":"), "{command}");
        }
    }
}
