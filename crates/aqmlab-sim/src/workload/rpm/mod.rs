//! Responsiveness under working conditions: round trips per minute, RPM, as measured by
//! networkQuality.
//!
//! In each interval, load-generating connections are added in the direction given by `load`, until
//! the goodput of each direction stops growing. During the test, probes request one byte. Foreign
//! probes use new connections; their times are the TCP handshake `tcp_f`, a TLS round trip `tls_f`,
//! and request and answer `http_f`. Self probes use a loaded connection (`http_l`). The test ends
//! when the responsiveness of the last intervals is stable, or at its `limit`.
//!
//! All four times are recorded over the whole test. Reported are `rpm`, its two halves
//! `rpm_foreign` and `rpm_loaded`, the goodputs `download` and `upload` of the last intervals in
//! bit/s, the duration `seconds`, and the `confidence`: 0 is low, 1 medium, 2 high. Goodput counts
//! arrived bytes once, in order or not: an application that reads in order receives no data during
//! a gap, and then more than the link rate.
//!
//! # Sources
//! draft-ietf-ippm-responsiveness, sections "Test Parameters", "Measuring Responsiveness" and
//! "Final Algorithm", as of commit a9c9536 of its repository (version 09). "The algorithm is the
//! same for upload and download": the goodput of each direction is evaluated separately, and the
//! responsiveness of a concurrent test after both.
//!
//! # Differences
//! 1. The draft has a pair of probes every 1/MPS s, but also a total of `probes` per second, which
//!    is half as many. The second agrees with its figure of 300 kB per second, and is used here.
//! 2. Probes start after the first interval: their number is a share of the goodput of the interval
//!    before, down and up together.
//! 3. Data inserted into a loaded connection is sent next: senders buffer no unsent data (the draft
//!    requires TCP_NOTSENT_LOWAT).
//! 4. HTTP/2's framing is included in the sizes of requests and answers; uploads and downloads use
//!    separate connections.
//! 5. The standard deviation is that of the population.
//! 6. `interval` is 1 s, as in the draft up to version 08. Version 09 has 5 s, "pending further
//!    investigation, for now": four of these are the 20 s that it allocates to both stages of a
//!    direction.

use std::collections::VecDeque;

use aqmlab_core::{Bytes, Component, Span, Stream, Time, choices, params};

use self::samples::Samples;
use self::stability::Stability;
use super::Workload;
use super::connection::{Arrival, Connection};
use crate::workload::agenda::Agenda;
use crate::workload::app::{App, Context, Direction};

mod samples;
mod stability;

choices! {
    /// Direction of the load.
    pub enum Load {
        /// Both directions simultaneously, as in networkQuality.
        Both = "both",
        /// Along the group's path.
        Down = "down",
        /// Along the group's return path.
        Up = "up",
    }
}

params! {
    /// Responsiveness test.
    pub struct RpmParams {
        /// Direction of the load.
        load: Load = Load::Both, source "draft-ietf-ippm-responsiveness, networkQuality";
        /// Intervals of the moving averages, MAD.
        distance: u64 = 4, in 2 => 1000, source "draft-ietf-ippm-responsiveness, MAD";
        /// Length of an interval, ID.
        interval: Span = Span::from_secs(1), in Span::from_millis(1) => Span::from_secs(3600),
            source "draft-ietf-ippm-responsiveness, ID";
        /// Share of the times that counts, excluding the longest: TMP.
        trim: f64 = 0.95, in 0.01 => 1.0, source "draft-ietf-ippm-responsiveness, TMP";
        /// Largest deviation of a stable value, as a share of the average, SDT.
        tolerance: f64 = 0.05, in 0.0001 => 1.0, source "draft-ietf-ippm-responsiveness, SDT";
        /// Loaded connections at the start, in each direction: INP.
        initial: u64 = 1, in 1 => 1000, source "draft-ietf-ippm-responsiveness, INP";
        /// Loaded connections added in each interval, in each direction: INC.
        increment: u64 = 1, in 0 => 1000, source "draft-ietf-ippm-responsiveness, INC";
        /// Maximum of loaded connections in each direction, MNP.
        most: u64 = 16, in 1 => 10_000, source "draft-ietf-ippm-responsiveness, MNP";
        /// Maximum number of probes per second, MPS; half of them are foreign.
        probes: f64 = 100.0, in 0.01 => 100_000.0, source "draft-ietf-ippm-responsiveness, MPS";
        /// Share of the capacity that probes may use, PTC.
        share: f64 = 0.05, in 0.0001 => 1.0, source "draft-ietf-ippm-responsiveness, PTC";
        /// Round trips of TLS; 0: no TLS.
        tls: u64 = 1, in 0 => 3, source "RFC 8446, section 2";
        /// Bytes of the server's first flight, with its certificates.
        certificates: Bytes = Bytes::new(4000), in Bytes::new(1) => Bytes::new(1_000_000),
            source "draft-ietf-ippm-responsiveness: some 5000 bytes for a foreign probe";
        /// Bytes of a request.
        request: Bytes = Bytes::new(100), in Bytes::new(1) => Bytes::new(100_000),
            source "this program";
        /// Bytes of the answer to a probe: its header, and one byte.
        response: Bytes = Bytes::new(100), in Bytes::new(1) => Bytes::new(100_000),
            source "this program";
        /// Latest end of the test.
        limit: Span = Span::from_secs(20), in Span::from_millis(1) => Span::from_secs(10_000_000),
            source "draft-ietf-ippm-responsiveness: 10 s for each of two stages";
    }
}

impl Component for RpmParams {
    const NAME: &'static str = "rpm";
    const SUMMARY: &'static str = "Responsiveness under load, in round trips per minute (RPM)";
}

impl Workload for RpmParams {
    fn is_finite(&self) -> bool {
        true
    }

    fn app(&self, streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>> {
        Some(Box::new(Tester::new(self, streams("probe"))))
    }
}

/// Bytes of a foreign and a self probe, by the draft's estimate.
const PAIR: f64 = 5000.0 + 1000.0;

#[derive(Clone)]
enum RpmTask {
    Interval,
    /// Start of a foreign probe; its self probe starts after half the interval.
    Probe,
    SelfProbe,
    Limit,
}

/// Load-generating connection.
#[derive(Clone)]
struct Loaded {
    connection: Connection,
    direction: Direction,
}

/// Foreign probe: its current step, and the start of that step.
#[derive(Clone)]
struct Foreign {
    connection: Connection,
    since: Time,
}

/// Number of the request that starts a download; requests of probes have other numbers.
const DOWNLOAD: u32 = u32::MAX;

#[derive(Clone)]
struct Tester {
    params: RpmParams,
    directions: &'static [Direction],
    agenda: Agenda<RpmTask>,
    choice: Stream,
    loaded: Vec<Loaded>,
    foreign: Vec<Foreign>,
    /// Self probes in flight: their numbers and start times.
    own: VecDeque<(u32, Time)>,
    probes: u32,
    /// Time between two pairs of probes, once a goodput is known.
    gap: Option<Span>,
    samples: Samples,
    began: Time,
    ended: Option<Time>,
    /// Bytes that arrived in the last intervals, down and up, and the totals before.
    moved: VecDeque<[u64; 2]>,
    counted: [u64; 2],
    /// Goodput of each loaded direction, until it has been stable once.
    goodputs: Vec<(Direction, Stability)>,
    responsiveness: Stability,
}

impl Tester {
    fn new(params: &RpmParams, choice: Stream) -> Self {
        let stability = || Stability::new(params.distance as usize, params.tolerance);
        let directions: &[Direction] = match params.load {
            Load::Both => &Direction::ALL,
            Load::Down => &[Direction::Forward],
            Load::Up => &[Direction::Backward],
        };
        Tester {
            params: params.clone(),
            directions,
            agenda: Agenda::default(),
            choice,
            loaded: Vec::new(),
            foreign: Vec::new(),
            own: VecDeque::new(),
            probes: 0,
            gap: None,
            samples: Samples::default(),
            began: Time::ZERO,
            ended: None,
            moved: VecDeque::new(),
            counted: [0; 2],
            goodputs: directions.iter().map(|direction| (*direction, stability())).collect(),
            responsiveness: stability(),
        }
    }

    /// Adds load-generating connections, up to the maximum.
    fn add_load(&mut self, number: u64, cx: &mut Context) {
        let RpmParams { tls, certificates, most, .. } = self.params;
        for direction in self.directions {
            let of_direction = self.loaded.iter().filter(|each| each.direction == *direction);
            let room = most.saturating_sub(of_direction.count() as u64);
            for _ in 0..number.min(room) {
                let connection = Connection::open(0, tls, certificates.get(), false, cx);
                let mut loaded = Loaded { connection, direction: *direction };
                if tls == 0 {
                    loaded.begin(self.params.request.get(), cx);
                }
                self.loaded.push(loaded);
            }
        }
    }

    /// Counts the bytes of an interval that ends. Returns whether the test is over.
    fn count_interval(&mut self, cx: &mut Context) -> bool {
        let mut sums = [0; 2];
        for Loaded { connection, direction } in &self.loaded {
            sums[usize::from(*direction == Direction::Backward)] +=
                connection.carried(*direction, cx);
        }
        let moved = [0, 1].map(|way: usize| sums[way] - self.counted[way]);
        self.counted = sums;
        self.moved.push_back(moved);
        if self.moved.len() as u64 > self.params.distance {
            self.moved.pop_front();
        }
        self.judge(cx.now())
    }

    fn end_interval(&mut self, cx: &mut Context) {
        let RpmParams { interval, share, probes, increment, .. } = self.params;
        if self.count_interval(cx) {
            return self.finish(cx);
        }
        let moved = self.moved.back().map_or(0, |[down, up]| down + up);
        let capacity = moved as f64 / interval.as_secs_f64();
        let pairs = (probes / 2.0).min(share * capacity / PAIR);
        if pairs > 0.0 {
            let gap = Span::from_secs_f64(1.0 / pairs);
            if self.gap.replace(gap).is_none() {
                self.agenda.add(cx.now(), RpmTask::Probe, cx);
            }
        }
        self.add_load(increment, cx);
        self.agenda.add(cx.now() + interval, RpmTask::Interval, cx);
    }

    /// Returns whether all is stable: the goodput of each direction, averaged over `distance`
    /// intervals, and then the responsiveness.
    fn judge(&mut self, now: Time) -> bool {
        if (self.moved.len() as u64) < self.params.distance {
            return false;
        }
        if !self.goodputs.is_empty() {
            let rates = self.rates();
            self.goodputs.retain_mut(|(direction, goodput)| {
                goodput.add(rates[*direction as usize]);
                !goodput.is_stable()
            });
            return false;
        }
        if let Some([rpm, ..]) = self.rpm(now) {
            self.responsiveness.add(rpm);
        }
        self.responsiveness.is_stable()
    }

    /// Returns the goodputs down and up over the last intervals, at least one, in bit/s.
    fn rates(&self) -> [f64; 2] {
        let time = self.moved.len() as f64 * self.params.interval.as_secs_f64();
        [0, 1].map(|way: usize| {
            self.moved.iter().map(|moved| moved[way]).sum::<u64>() as f64 * 8.0 / time
        })
    }

    /// Returns the responsiveness, foreign and loaded, over the last intervals.
    fn rpm(&self, now: Time) -> Option<[f64; 3]> {
        let RpmParams { distance, interval, trim, tls, .. } = self.params;
        let window = Span::from_nanos(interval.as_nanos() * distance);
        let since = Time::ZERO + now.saturating_since(Time::ZERO + window);
        self.samples.rpm(since, trim, tls > 0)
    }

    fn finish(&mut self, cx: &mut Context) {
        self.ended = Some(cx.now());
        let activity = cx.activity();
        activity.completed += 1;
        activity.bytes += self.counted.iter().sum::<u64>();
        let foreign = self.foreign.drain(..).map(|each| each.connection);
        let loaded = self.loaded.drain(..).map(|each| each.connection);
        foreign.chain(loaded).for_each(|connection| connection.close(cx));
        cx.end();
    }

    fn probe(&mut self, cx: &mut Context) {
        let Some(gap) = self.gap else { return };
        let RpmParams { tls, certificates, .. } = self.params;
        let connection = Connection::open(0, tls, certificates.get(), true, cx);
        self.foreign.push(Foreign { connection, since: cx.now() });
        self.agenda.add(cx.now() + Span::from_nanos(gap.as_nanos() / 2), RpmTask::SelfProbe, cx);
        self.agenda.add(cx.now() + gap, RpmTask::Probe, cx);
    }

    /// Sends a probe over any load-generating connection.
    fn probe_load(&mut self, cx: &mut Context) {
        let open = self.loaded.iter_mut().filter(|each| each.connection.is_filled());
        let mut open: Vec<&mut Loaded> = open.collect();
        let place = (self.choice.uniform() * open.len() as f64) as usize;
        let Some(loaded) = open.get_mut(place) else { return };
        self.own.push_back((self.probes, cx.now()));
        loaded.connection.ask(self.probes, self.params.request.get(), cx);
        self.probes = (self.probes + 1) % DOWNLOAD;
    }

    fn of_loaded(&mut self, place: usize, arrival: Arrival, cx: &mut Context) {
        let loaded = &mut self.loaded[place];
        match arrival {
            Arrival::Opened => loaded.begin(self.params.request.get(), cx),
            Arrival::Request(DOWNLOAD) => loaded.connection.fill(Direction::Forward, cx),
            Arrival::Request(probe) => {
                loaded.connection.answer(probe, self.params.response.get(), cx);
            }
            Arrival::FirstByte(_) => {}
            Arrival::Object(probe) => {
                let Some(place) = self.own.iter().position(|(own, _)| *own == probe) else {
                    return;
                };
                if let Some((_, asked)) = self.own.remove(place) {
                    let time = cx.now() - asked;
                    self.samples.add("http_l", time, cx);
                }
            }
        }
    }

    fn of_foreign(&mut self, place: usize, arrival: Arrival, cx: &mut Context) {
        let foreign = &mut self.foreign[place];
        match arrival {
            Arrival::Opened => {
                let time = foreign.begin_next(cx.now());
                let round_trip = Span::from_nanos(time.as_nanos() / self.params.tls);
                self.samples.add("tls_f", round_trip, cx);
                foreign.connection.ask(0, self.params.request.get(), cx);
            }
            Arrival::Request(_) => {
                foreign.connection.answer(0, self.params.response.get(), cx);
            }
            Arrival::FirstByte(_) => {}
            Arrival::Object(_) => {
                let time = foreign.begin_next(cx.now());
                self.samples.add("http_f", time, cx);
                self.foreign.swap_remove(place).connection.close(cx);
            }
        }
    }
}

impl Loaded {
    /// Starts the load: requests it, or sends it.
    fn begin(&mut self, request: u64, cx: &mut Context) {
        match self.direction {
            Direction::Forward => self.connection.ask(DOWNLOAD, request, cx),
            Direction::Backward => self.connection.fill(Direction::Backward, cx),
        }
    }
}

impl Foreign {
    /// Ends a step, and returns its duration.
    fn begin_next(&mut self, now: Time) -> Span {
        now - std::mem::replace(&mut self.since, now)
    }
}

impl App for Tester {
    fn start(&mut self, cx: &mut Context) {
        self.began = cx.now();
        cx.activity().started += 1;
        self.add_load(self.params.initial, cx);
        self.agenda.add(cx.now() + self.params.limit, RpmTask::Limit, cx);
        self.agenda.add(cx.now() + self.params.interval, RpmTask::Interval, cx);
    }
    fn on_timer(&mut self, cx: &mut Context) {
        while self.ended.is_none()
            && let Some(step) = self.agenda.due(cx)
        {
            match step {
                RpmTask::Interval => self.end_interval(cx),
                RpmTask::Probe => self.probe(cx),
                RpmTask::SelfProbe => self.probe_load(cx),
                RpmTask::Limit => {
                    // An interval that ends at the limit counts. Its own task, added later, follows.
                    let lasted = (cx.now() - self.began).as_nanos();
                    if lasted.is_multiple_of(self.params.interval.as_nanos()) {
                        self.count_interval(cx);
                    }
                    self.finish(cx);
                }
            }
        }
    }
    fn on_connected(&mut self, flow: u32, cx: &mut Context) {
        let Some(foreign) = self.foreign.iter_mut().find(|each| each.connection.has(flow)) else {
            return;
        };
        let time = foreign.begin_next(cx.now());
        self.samples.add("tcp_f", time, cx);
        if self.params.tls == 0 {
            foreign.connection.ask(0, self.params.request.get(), cx);
        }
    }
    fn on_received(&mut self, flow: u32, cx: &mut Context) {
        while let Some(place) = self.loaded.iter().position(|each| each.connection.has(flow))
            && let Some(arrival) = self.loaded[place].connection.arrived(flow, cx)
        {
            self.of_loaded(place, arrival, cx);
        }
        while let Some(place) = self.foreign.iter().position(|each| each.connection.has(flow))
            && let Some(arrival) = self.foreign[place].connection.arrived(flow, cx)
        {
            self.of_foreign(place, arrival, cx);
        }
    }
    fn report(&self, now: Time, see: &mut dyn FnMut(&'static str, f64)) {
        let now = self.ended.unwrap_or(now);
        if let Some([rpm, foreign, loaded]) = self.rpm(now) {
            see("rpm", rpm);
            see("rpm_foreign", foreign);
            see("rpm_loaded", loaded);
        }
        if !self.moved.is_empty() {
            let [download, upload] = self.rates();
            see("download", download);
            see("upload", upload);
        }
        let confidence = match (self.responsiveness.count(), self.responsiveness.is_stable()) {
            (_, true) => 2.0,
            (count, _) if count >= self.params.distance => 1.0,
            _ => 0.0,
        };
        see("confidence", confidence);
        see("seconds", (now - self.began).as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed manually, with intervals of 1 s.
    #[test]
    fn goodput_is_averaged_over_the_intervals_that_have_passed() {
        let mut tester = Tester::new(&RpmParams::default(), Stream::for_component(1, 0, "probe"));
        tester.report(Time::ZERO, &mut |name, _| assert!(!name.ends_with("load"), "{name}"));
        tester.moved.extend([[500_000, 0], [250_000, 100_000]]);
        assert_eq!(tester.rates(), [3e6, 4e5]);
        tester.moved.extend([[250_000, 0]; 2]);
        assert_eq!(tester.rates(), [2.5e6, 2e5]);
        // A download that is stable from the start needs seven intervals of a second.
        let mut tester = Tester::new(&RpmParams::default(), Stream::for_component(1, 0, "probe"));
        let left = (1..=7).map(|_| {
            tester.moved.push_back([250_000; 2]);
            tester.moved.truncate(4);
            tester.judge(Time::ZERO);
            tester.goodputs.len()
        });
        assert_eq!(left.collect::<Vec<_>>(), [2, 2, 2, 2, 2, 2, 0]);
    }

    /// Two directions may exchange capacity: their sum is then stable, but neither direction is.
    #[test]
    fn the_goodput_of_each_direction_has_to_be_stable() {
        let mut tester = Tester::new(&RpmParams::default(), Stream::for_component(1, 0, "probe"));
        let mut end_interval = |down: u64| {
            tester.moved.push_back([down, 3_000_000 - down]);
            while tester.moved.len() > 4 {
                tester.moved.pop_front();
            }
            let is_over = tester.judge(Time::ZERO + Span::from_secs(9));
            assert!(!is_over, "without a responsiveness it does not end");
            tester.goodputs.iter().map(|(direction, _)| *direction).collect::<Vec<_>>()
        };
        for down in (0..10).map(|interval| 250_000 * interval) {
            assert_eq!(end_interval(down), Direction::ALL, "{down}");
        }
        // The upload changes while the download is stable, and then is stable as well.
        let left: Vec<_> = (0..12).map(|_| end_interval(2_500_000).len()).collect();
        assert_eq!((left[0], left[11]), (2, 0), "{left:?}");
    }
}
