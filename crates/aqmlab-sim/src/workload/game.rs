//! Game traffic: small packets in both directions.
//!
//! The client sends its player's state about every 40 ms, the server the game's state about every
//! 60 ms. Late packets are as useless as lost ones: reported for each direction (forward: from the
//! server to the client) are the shares `lost` and `late`, the latter of packets that took longer
//! than `threshold`; delays and jitter are those of the flows.
//!
//! # Sources
//! Färber, Network game traffic modelling (NetGames 2002): Counter-Strike, with extreme value
//! distributions. The same numbers are in NGMN's Radio access performance evaluation methodology
//! (2008), annex A, where the client's gaps are constant, and in simulators based on it (the Vienna
//! LTE simulator, with a delay bound of 60 ms; ns-3, with a scale of 5.7 for the server's gaps).
//! The scale of the client's sizes, 5.7 bytes, is used unchanged.
//!
//! # Differences
//! 1. Sizes and gaps are independent. The model is one client, not the bursts of a server to all
//!    clients at once.
//! 2. Overtaken packets count as lost, as do packets delayed by more than 3 s.

use aqmlab_core::{Bytes, Component, Distribution, Result, Sampler, Span, Stream, Time, params};

use super::ledger::{GIVEN_UP, Ledger};
use super::transfers::check_gap;
use super::{Workload, written};
use crate::workload::app::{App, Context, Direction, Tally};

params! {
    /// Packets of a game.
    pub struct GameParams {
        /// Bytes of a client packet above UDP.
        up: Distribution<Bytes> = written("extreme(location=45b, scale=5.7b)"),
            source "NGMN 2008, annex A";
        /// Time between two client packets.
        up_gap: Distribution<Span> = Distribution::constant(Span::from_millis(40)),
            source "NGMN 2008, annex A; Färber 2002: 40 ms on average";
        /// Bytes of a server packet above UDP.
        down: Distribution<Bytes> = written("extreme(location=120b, scale=36b)"),
            source "Färber 2002; NGMN 2008, annex A";
        /// Time between two server packets.
        down_gap: Distribution<Span> = written("extreme(location=55ms, scale=6ms)"),
            source "Färber 2002; NGMN 2008, annex A";
        /// Delay above which a packet is late.
        threshold: Span = Span::from_millis(60), in Span::ZERO => Span::from_secs(3600),
            source "the Vienna LTE simulator's delay constraint for games";
    }
}

/// Bytes of the IP and UDP headers.
const HEADERS: u64 = 20 + 8;

impl Component for GameParams {
    const NAME: &'static str = "game";
    const SUMMARY: &'static str = "Games: small packets in both directions, and their lateness";

    fn check(&self) -> Result<()> {
        check_gap(&self.up_gap).map_err(|error| error.at("up_gap"))?;
        check_gap(&self.down_gap).map_err(|error| error.at("down_gap"))
    }
}

impl Workload for GameParams {
    fn app(&self, streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>> {
        let other = Some(self.clone());
        Some(Box::new(Gamer { other, ..Gamer::new(self, Direction::Forward, streams) }))
    }
}

/// One side of a game, with the packets it receives from the other.
#[derive(Clone)]
struct Gamer {
    direction: Direction,
    /// Parameters of the other side, which this one starts.
    other: Option<GameParams>,
    size: Sampler<Bytes>,
    gap: Sampler<Span>,
    phase: Stream,
    threshold: Span,
    flow: u32,
    ledger: Ledger,
    in_time: u64,
    late: u64,
}

impl Gamer {
    fn new(params: &GameParams, direction: Direction, streams: &dyn Fn(&str) -> Stream) -> Self {
        let (size, gap, keys) = match direction {
            Direction::Forward => (&params.down, &params.down_gap, ["down", "down_gap"]),
            Direction::Backward => (&params.up, &params.up_gap, ["up", "up_gap"]),
        };
        Gamer {
            direction,
            other: None,
            size: Sampler::new(size, streams(keys[0])),
            gap: Sampler::new(gap, streams(keys[1])),
            phase: streams("phase"),
            threshold: params.threshold,
            flow: 0,
            ledger: Ledger::default(),
            in_time: 0,
            late: 0,
        }
    }
}

impl App for Gamer {
    fn start(&mut self, cx: &mut Context) {
        self.flow = cx.datagrams(self.direction, true);
        if let Some(params) = self.other.take() {
            cx.spawn(|streams| Box::new(Gamer::new(&params, Direction::Backward, streams)));
        }
        // NGMN: the first packet is sent within 40 ms, so that players are not synchronised.
        let phase = self.phase.uniform_span(Span::ZERO, Span::from_millis(40));
        cx.wake_after(phase);
    }
    fn on_timer(&mut self, cx: &mut Context) {
        let payload = self.size.draw().get().clamp(1, 65_000);
        self.ledger.sent(cx.now());
        let activity = cx.activity();
        activity.started += 1;
        cx.send_datagram(self.flow, (HEADERS + payload) as u32);
        cx.wake_after(self.gap.draw());
    }
    fn on_datagram(&mut self, _flow: u32, sent: Time, cx: &mut Context) {
        self.ledger.overtake(sent);
        if !self.ledger.arrived(sent, cx.now()) {
            return;
        }
        cx.activity().completed += 1;
        match cx.now() - sent <= self.threshold {
            true => self.in_time += 1,
            false => self.late += 1,
        }
    }
    fn tally(&self, now: Time) -> Tally {
        [self.in_time as f64, self.late as f64, self.ledger.lost(now, GIVEN_UP) as f64, 0.0]
    }
    fn score(&self, [in_time, late, lost, _]: Tally, see: &mut dyn FnMut(&'static str, f64)) {
        let due = in_time + late + lost;
        if due > 0.0 {
            see("lost", lost / due);
            see("late", late / due);
        }
    }
    fn direction(&self) -> Option<Direction> {
        Some(self.direction)
    }
    fn restart(&mut self, now: Time) {
        (self.in_time, self.late) = (0, 0);
        self.ledger.restart(now, GIVEN_UP);
    }
}
