//! Runs of reference implementations, replayed packet by packet: the 130 cases of the Python
//! package, which reads and writes the same archive. The package maps parameters of a reference to
//! those of aqmlab; a case contains the settings of the queue.

use aqmlab_aqm::{QueueConfig, registry};
use aqmlab_conformance::queues::{QueueOutcome, replay};

use crate::archive::{Archive, Case, Recorded};
use crate::on_all_processors;

/// The first packet of which something is not as recorded.
fn first_difference(case: &Case, ours: &[QueueOutcome]) -> Option<String> {
    let place = (0..case.outcomes.len().max(ours.len()))
        .find(|place| ours.get(*place).map(Recorded::of) != case.outcomes.get(*place).cloned())?;
    Some(format!(
        "decision {place}: expected {:?}, got {:?}",
        case.outcomes.get(place),
        ours.get(place).map(Recorded::of),
    ))
}

fn compare(case: &Case) -> Option<String> {
    let config = QueueConfig::read(&case.queue).expect("the settings of a recorded case");
    let ours = replay(&config, &case.surroundings, &case.arrivals);
    first_difference(case, &ours).map(|what| format!("{}: {what}", case.name))
}

#[test]
fn every_recorded_case_is_equal_packet_by_packet() {
    let archive = Archive::read();
    assert_eq!(archive.len(), 130);
    let results = on_all_processors(archive.len(), |index| {
        let case = archive.case(index);
        (case.outcomes.len(), compare(&case))
    });
    let packets: usize = results.iter().map(|(packets, _)| packets).sum();
    let different: Vec<String> = results.into_iter().filter_map(|(_, what)| what).collect();
    assert!(different.is_empty(), "{} cases differ:\n{}", different.len(), different.join("\n"));
    assert_eq!(packets, 760_786);
}

#[test]
fn a_changed_outcome_is_found() {
    let archive = Archive::read();
    let mut case = archive.case(archive.named("codel_linux/f_ecn"));
    assert_eq!(compare(&case), None);
    case.outcomes[100].time += 1;
    assert!(compare(&case).unwrap().contains("decision 100: expected"));
    case.outcomes[100].time -= 1;
    case.outcomes.swap(200, 201);
    assert!(compare(&case).unwrap().contains("decision 200: expected"));
}

/// What a discipline has no recorded case of is held by other tests alone.
#[test]
fn the_disciplines_without_recorded_cases_are_known() {
    let archive = Archive::read();
    let recorded: Vec<String> = (0..archive.len()).map(|index| archive.discipline(index)).collect();
    let without: Vec<&str> = registry::entries()
        .iter()
        .map(|entry| entry.name)
        .filter(|name| !recorded.iter().any(|recorded| recorded == name))
        .collect();
    assert_eq!(
        without,
        [
            "droptail",
            "codel_dt",
            "cobalt",
            "pie2013",
            "docsis_pie",
            "fq_cobalt",
            "drr",
            "sfq_pie",
            "pi2",
            "bernoulli",
            "blue",
            "choke",
            "sred",
            "pi",
            "step"
        ]
    );
}
