//! Every recorded connection once more, with both ends and the links between them ours.

use aqmlab_conformance::senders::closed_loop::play;
use aqmlab_conformance::senders::{Case, Outcome};
use aqmlab_core::{Span, Time};

use crate::{connections, named, on_all_processors};

/// Recordings that differ: docs/transports/linux.md has the causes.
const DIFFERENT: [&str; 3] = ["bbr_jitter", "cubic-6.12_loss_15", "cubic_loss_15"];

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
    let find = |name: &str| named(&cases, name).clone();
    let differs = |case: &Case| !play(case).expect("it is built").is_close_to(&case.outcome);
    let bulk = find("reno_bulk");
    assert!(!differs(&bulk));
    let mut slower = bulk.clone();
    slower.path.rate = slower.path.rate * 9 / 10;
    let mut farther = bulk.clone();
    farther.path.return_delay += Span::from_millis(30);
    let mut deeper = bulk;
    deeper.path.limit *= 3;
    let mut without_loss = find("cubic_loss_5");
    without_loss.path.lost.clear();
    let mut without_marks = find("dctcp_ecn");
    without_marks.path.mark_above = 0;
    let mut without_rates = find("scalable_rate_steps");
    without_rates.path.rates.clear();
    let mut light = find("reno_blackout");
    light.path.blackouts = vec![(Time::ZERO, Time::ZERO)];
    let mut in_time = find("reno_reordering");
    in_time.path.late.clear();
    let mut acknowledged = find("cubic_ack_loss");
    acknowledged.path.acks_lost = (3..400).collect();
    for case in [
        slower,
        farther,
        deeper,
        without_loss,
        without_marks,
        without_rates,
        light,
        in_time,
        acknowledged,
    ] {
        assert!(differs(&case), "{}: {:?}", case.name, case.path);
    }
}
