//! Every recorded kernel's sender, replayed segment by segment.

use aqmlab_conformance::senders::{Case, Event, compare};

use crate::{connections, named, on_all_processors};

#[test]
fn senders_are_the_kernels_to_the_segment() {
    let cases = connections();
    let (mut segments, mut windows) = (0, 0);
    let compared = on_all_processors(cases.len(), |index| compare(&cases[index]));
    for (Case { name, .. }, seen) in cases.iter().zip(compared) {
        let seen = seen.expect("the control is one of ours");
        assert!(seen.is_equal(), "{name}: {seen:?}");
        assert_eq!(seen.srtt_equal, seen.windows, "{name}: smoothed round-trip times");
        segments += seen.segments;
        windows += seen.windows;
    }
    assert_eq!((segments, windows), (339_442, 268_317));
}

#[test]
fn a_recording_packs_and_unpacks() {
    for case in connections().iter().take(3) {
        let packed = case.pack();
        assert_eq!(&Case::unpack(&mut &*packed).expect("it was packed"), case);
        let cut = &packed[..packed.len() / 2];
        assert!(Case::unpack(&mut &*cut).is_err(), "a damaged one is refused");
    }
}

/// The comparison sees what differs: a later acknowledgement, a lost one, another control.
#[test]
fn differences_are_found() {
    let all = connections();
    let case = named(&all, "reno_single_loss");
    assert!(compare(case).unwrap().is_equal());
    let mut without = case.clone();
    let middle = without.events.iter().rposition(|event| matches!(event, Event::Acknowledged(_)));
    without.events.remove(middle.expect("there are some") / 2);
    let seen = compare(&without).unwrap();
    assert!(!seen.is_equal() && seen.first_difference.is_some(), "{seen:?}");
    let mut other = case.clone();
    other.settings.control = "scalable".to_string();
    let seen = compare(&other).unwrap();
    assert!(seen.windows_equal < seen.windows, "{seen:?}");
}
