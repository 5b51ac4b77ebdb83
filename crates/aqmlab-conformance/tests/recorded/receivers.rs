//! Every recorded kernel's receiver, replayed acknowledgement by acknowledgement.

use aqmlab_conformance::senders::Event;
use aqmlab_conformance::senders::receivers::compare;

use crate::{connections, named, on_all_processors};

/// Recordings that differ: docs/transports/linux.md has the causes.
const DIFFERENT: [&str; 6] = [
    "cubic-6.12_no_timestamps",
    "highspeed_bulk_deep",
    "highspeed_far",
    "reno_bulk_deep",
    "scalable_bulk_deep",
    "westwood_far",
];

#[test]
fn receivers_acknowledge_as_the_kernels() {
    let cases = connections();
    let compared = on_all_processors(cases.len(), |index| compare(&cases[index]));
    let (mut acks, mut equal, mut windows) = (0, 0, 0);
    for (case, seen) in cases.iter().zip(compared) {
        let seen = seen.expect("the control is one of ours");
        let is_known = DIFFERENT.contains(&case.name.as_str());
        assert_eq!(seen.is_equal(), !is_known, "{}: {seen:?}", case.name);
        acks += seen.acks;
        equal += seen.acks_equal;
        windows += seen.windows_equal;
    }
    assert_eq!((acks, equal, windows), (268_441, 259_559, 257_075));
}

/// The comparison sees a segment that did not come, and one that was not pushed.
#[test]
fn differences_of_receivers_are_found() {
    let all = connections();
    let case = named(&all, "reno_bulk");
    assert!(compare(case).unwrap().is_equal());
    for hit in [300, 800] {
        let mut other = case.clone();
        let sent = other.events.iter_mut().filter(|event| matches!(event, Event::Sent { .. }));
        let mut sent: Vec<_> = sent.collect();
        let Event::Sent { lost, .. } = &mut *sent[hit] else { panic!("they are sent") };
        *lost = !*lost;
        assert!(!compare(&other).unwrap().is_equal());
    }
    let mut calm = case.clone();
    for event in &mut calm.events {
        if let Event::Sent { push, .. } = event {
            *push = false;
        }
    }
    assert!(!compare(&calm).unwrap().is_equal());
}
