//! Users' controllers: what an evaluation says of good and broken ones.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aqmlab_quic::noq_proto::congestion::{Controller, CubicConfig, NewReno, NewRenoConfig};
use aqmlab_quic::{Evaluation, Verdict, quinn_proto};

/// What a controller does at an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Does {
    Nothing,
    Panic,
    /// Does not return.
    Loop,
}

/// A controller with a fixed window.
#[derive(Clone, Debug)]
struct Fixed {
    window: u64,
    does: Does,
}

impl Controller for Fixed {
    fn on_end_acks(&mut self, _: Instant, _: u64, _: bool, _: Option<u64>) {
        assert!(self.does != Does::Panic, "no acknowledgements, please");
        if self.does == Does::Loop {
            loop {
                std::thread::park();
            }
        }
    }
    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, _: bool, _: u64, _: u64) {}
    fn on_mtu_update(&mut self, _: u16) {}
    fn window(&self) -> u64 {
        self.window
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
    fn initial_window(&self) -> u64 {
        self.window
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

fn fixed(window: u64, does: Does) -> Evaluation {
    Evaluation::new(move || Box::new(Fixed { window, does }))
}

#[test]
fn new_reno_of_both_libraries_passes() {
    let config = Arc::new(NewRenoConfig::default());
    let now = aqmlab_quic_now();
    let noq = Evaluation::new(move || Box::new(NewReno::new(config.clone(), now, 1200)));
    let report = noq.run();
    assert!(report.passes() && report.readings.len() == 13, "{report}");
    let undecided = report.readings.iter().filter(|each| each.verdict == Verdict::Undecided);
    assert!(undecided.count() <= 3, "{report}");
    // Each replication is compared with one of the library's CUBIC, with equal random numbers.
    let cubic = Arc::new(CubicConfig::default());
    let same = Evaluation::new(move || {
        let made = aqmlab_quic::noq_proto::congestion::Cubic::new(cubic.clone(), now, 1200);
        Box::new(made)
    });
    for each in &same.replications(1).run().readings {
        assert!((each.mean - each.cubic).abs() < 1e-9, "{each:?}");
    }
    let config = Arc::new(quinn_proto::congestion::NewRenoConfig::default());
    let quinn = Evaluation::new(move || {
        Box::new(quinn_proto::congestion::NewReno::new(config.clone(), now, 1200))
    });
    assert!(quinn.run().passes());
}

#[test]
fn a_controller_that_ignores_congestion_fails() {
    let report = fixed(110_000, Does::Nothing).run();
    assert!(report.failure.is_none() && !report.passes(), "{report}");
    assert!(report.metric("beside CUBIC", "share").unwrap() > 0.8, "{report}");
    assert!(report.to_string().contains("does not hold"));
    // The report does not depend on threads, but on the seed. A small window sends few packets.
    let table = |threads, seed| {
        let evaluation = fixed(6_000, Does::Nothing).replications(1).threads(threads).seed(seed);
        evaluation.run().readings.iter().map(|each| each.mean).collect::<Vec<_>>()
    };
    let one = table(1, 1);
    assert_eq!(table(2, 1), one);
    assert_ne!(table(2, 2), one);
}

/// The reason names controller, virtual time, case, seed and replication.
#[test]
fn a_panic_silence_and_an_endless_loop_end_the_evaluation() {
    let endless = fixed(12_000, Does::Loop).patience(Duration::from_secs(2)).threads(1);
    for (evaluation, reason) in [
        (endless, "no progress at 0."),
        (fixed(12_000, Does::Panic), "`panic: no acknowledgements, please` at 0."),
        (fixed(0, Does::Nothing), "no data arrived by 15 s, 0 packets sent"),
    ] {
        let failure = evaluation.seed(7).run().failure.expect("it fails");
        for part in ["evaluate::Fixed", reason, "case `drop-tail`, seed 7, replication 0"] {
            assert!(failure.contains(part), "{part}: {failure}");
        }
    }
}

/// An instant for controllers that need one; its value does not matter.
#[allow(clippy::disallowed_methods)]
fn aqmlab_quic_now() -> Instant {
    Instant::now()
}
