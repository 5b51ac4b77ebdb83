//! The queue in a scenario, packet by packet.

use aqmlab_aqm::Disciplines;
use aqmlab_sim::{Outside, Scenario};

#[test]
fn what_has_waited_too_long_is_dropped_unless_it_is_the_last() {
    let mine = Disciplines::default().with(Box::new(rust_queue::MyQueueParams::default())).unwrap();
    let text = include_str!("../../scenario.toml");
    let set = [("queue", "my_queue"), ("queue.patience", "7ms"), ("record.level", "packets")];
    let set = set.map(|(key, text)| (key.to_string(), text.into()));
    let scenario =
        Scenario::parse_with(text, "scenario.toml", &set, Outside::disciplines(&mine)).unwrap();
    let again =
        Scenario::from_table(scenario.to_table(), "canonical", &[], Outside::disciplines(&mine));
    assert_eq!(again.unwrap(), scenario);
    let result = aqmlab_sim::run(&scenario, 0);
    let link = &result.links[scenario.bottleneck];
    assert!(link.counts.dropped_total() > 100, "{:?}", link.counts);
    let patience = aqmlab_core::Span::from_millis(7);
    for pair in link.packets.windows(2) {
        let (packet, next) = (&pair[0], &pair[1]);
        let late = packet.end - packet.arrival > patience;
        let alone = next.arrival >= packet.end;
        assert_eq!(packet.dropped.is_some(), late && !alone, "{packet:?}, {next:?}");
    }
}
