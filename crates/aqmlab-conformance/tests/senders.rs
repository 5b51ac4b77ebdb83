//! Every recorded kernel's sender, replayed segment by segment.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use aqmlab_conformance::senders::{Case, Comparison, Event, compare};

const PACKED: &[u8] = include_bytes!("../../../python/aqmlab/conformance/recorded/senders.xz");
/// Recordings that come with the package.
const CASES: usize = 124;

fn cases() -> Vec<Case> {
    let mut packed = Vec::new();
    lzma_rs::xz_decompress(&mut &*PACKED, &mut packed).expect("the archive can be read");
    let mut rest = &*packed;
    let mut cases = Vec::new();
    while !rest.is_empty() {
        cases.push(Case::unpack(&mut rest).expect("the archive holds recordings"));
    }
    cases
}

/// Compares them on all processors.
fn compare_all(cases: &[Case]) -> Vec<(&str, Comparison)> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let comparison = compare(case).expect("the control is one of ours");
            done.lock().expect("no thread panics").push((case.name.as_str(), comparison));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    done.into_inner().expect("no thread panics")
}

#[test]
fn senders_are_the_kernels_to_the_segment() {
    let cases = cases();
    assert_eq!(cases.len(), CASES);
    let (mut segments, mut windows) = (0, 0);
    for (name, seen) in compare_all(&cases) {
        assert!(seen.is_equal(), "{name}: {seen:?}");
        assert_eq!(seen.srtt_equal, seen.windows, "{name}: smoothed round-trip times");
        segments += seen.segments;
        windows += seen.windows;
    }
    assert_eq!((segments, windows), (339_442, 268_317));
}

#[test]
fn a_recording_packs_and_unpacks() {
    for case in cases().iter().take(3) {
        let packed = case.pack();
        assert_eq!(&Case::unpack(&mut &*packed).expect("it was packed"), case);
        let cut = &packed[..packed.len() / 2];
        assert!(Case::unpack(&mut &*cut).is_err(), "a damaged one is refused");
    }
}

/// The comparison sees what differs: a later acknowledgement, a lost one, another control.
#[test]
fn differences_are_found() {
    let all = cases();
    let case = all.iter().find(|case| case.name == "reno_single_loss").expect("it is there");
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
