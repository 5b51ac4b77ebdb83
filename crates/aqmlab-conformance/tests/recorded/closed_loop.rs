//! Every recorded connection once more, with both ends and the links between them ours.

use aqmlab_conformance::senders::closed_loop::play;
use aqmlab_conformance::senders::{Case, Outcome, Path};
use aqmlab_core::{Span, Time};

use crate::{connections, named, on_all_processors};

/// Recordings that differ: docs/transports/linux.md has the causes.
const DIFFERENT: [&str; 2] = ["cubic-6.12_loss_15", "cubic_loss_15"];

#[test]
fn connections_go_as_recorded_over_simulated_links() {
    let cases = connections();
    let mut different = Vec::new();
    let played = on_all_processors(cases.len(), |index| play(&cases[index]));
    for (case, outcome) in cases.iter().zip(played) {
        let outcome = outcome.expect("the control is one of ours");
        if !outcome.is_close_to(&case.outcome) {
            different.push((case.name.as_str(), outcome, case.outcome));
        }
    }
    let unknown = different.iter().filter(|(name, ..)| !DIFFERENT.contains(name));
    assert_eq!(unknown.collect::<Vec<_>>(), Vec::<&(&str, Outcome, Outcome)>::new());
}

/// The path matters: with another rate, delay, limit or loss the same connection goes otherwise.
#[test]
fn the_links_are_those_of_the_recording() {
    let cases = connections();
    let differs = |case: &Case| !play(case).expect("it is built").is_close_to(&case.outcome);
    assert!(!differs(named(&cases, "reno_bulk")));
    type Change = fn(&mut Path);
    let changes: [(&str, Change); 9] = [
        ("reno_bulk", |path| path.rate = path.rate * 9 / 10),
        ("reno_bulk", |path| path.return_delay += Span::from_millis(30)),
        ("reno_bulk", |path| path.limit *= 3),
        ("cubic_loss_5", |path| path.lost.clear()),
        ("dctcp_ecn", |path| path.mark_above = 0),
        ("scalable_rate_steps", |path| path.rates.clear()),
        ("reno_blackout", |path| path.blackouts = vec![(Time::ZERO, Time::ZERO)]),
        ("reno_reordering", |path| path.late.clear()),
        ("cubic_ack_loss", |path| path.acks_lost = (3..400).collect()),
    ];
    for (name, change) in changes {
        let mut case = named(&cases, name).clone();
        change(&mut case.path);
        assert!(differs(&case), "{name}: {:?}", case.path);
    }
}
