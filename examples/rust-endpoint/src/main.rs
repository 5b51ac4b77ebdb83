//! A custom transport, in a crate of its own, next to TCP in a scenario:
//! `cargo run -- ../scenario.toml flows.page.endpoint=window`.

mod window;

use aqmlab_core::{Result, Value};
use aqmlab_sim::endpoints::Endpoints;
use aqmlab_sim::scenario::parse_value;
use aqmlab_sim::{Outside, Scenario};
use window::WindowParams;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("which scenario, and which settings?")?;
    let set: Vec<(String, Value)> = arguments
        .filter_map(|setting| {
            let (key, value) = setting.split_once('=')?;
            Some((key.to_string(), parse_value(value)))
        })
        .collect();
    let scenario = read(&std::fs::read_to_string(&file)?, &file, &set)?;
    let result = aqmlab_sim::run(&scenario, 0);
    for flow in &result.flows {
        let name = &scenario.flows[flow.group as usize].name;
        println!("{name}.{} {:.6} Mbit/s", flow.index, flow.goodput / 1e6);
    }
    Ok(())
}

fn read(text: &str, file: &str, set: &[(String, Value)]) -> Result<Scenario> {
    let mine = Endpoints::default().with(Box::new(WindowParams::default()))?;
    Scenario::parse_with(text, file, set, Outside::endpoints(&mine))
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqmlab_sim::network::series::Subject;

    /// A flow of each kind over one queue.
    const BESIDE: &str = r#"
        duration = "30s"
        links.down = { rate = "10mbit", delay = "10ms", queue = "droptail" }
        links.up = { rate = "10mbit", delay = "10ms" }
        flows.theirs = { path = "down", return_path = "up" }
        flows.mine = { path = "down", return_path = "up", endpoint = "window" }
    "#;

    fn scenario(text: &str, set: &[(&str, &str)]) -> Scenario {
        let set: Vec<(String, Value)> =
            set.iter().map(|(key, value)| (key.to_string(), parse_value(value))).collect();
        read(text, "x.toml", &set).unwrap()
    }

    /// Next to Reno, with the same increase and decrease, it gets a fair share of a busy link, and
    /// lost messages are delivered all the same.
    #[test]
    fn it_shares_a_link_with_tcp() {
        let run = |set: &[(&str, &str)]| aqmlab_sim::run(&scenario(BESIDE, set), 0);
        let reno = ("transport.congestion_control", "\"reno\"");
        let result = run(&[("links.down.queue.limit", "\"25p\""), reno]);
        let [theirs, mine] = &result.flows[..] else { panic!("two flows") };
        assert!(result.links[0].utilisation > 0.95, "{}", result.links[0].utilisation);
        assert!((0.5..2.0).contains(&(mine.goodput / theirs.goodput)), "{}", mine.goodput);
        assert!(mine.losses.queues.data > 5, "{:?}", mine.losses);
        assert!(mine.stats.is_none() && theirs.stats.is_some());
        let carried = mine.delivered + mine.losses.queues.data * 1460;
        assert!(mine.sent * 1460 >= carried, "{} packets for {carried} bytes", mine.sent);
        // Its parameters count.
        let shy = run(&[
            ("links.down.queue.limit", "\"25p\""),
            reno,
            ("flows.mine.endpoint.gain", "0.1"),
        ]);
        let [theirs_then, mine_then] = &shy.flows[..] else { panic!("two flows") };
        assert!(mine_then.goodput < 0.8 * mine.goodput, "{}", mine_then.goodput);
        assert!(theirs_then.goodput > 1.2 * theirs.goodput, "{}", theirs_then.goodput);
    }

    /// Through loss, duplication and reordering every byte arrives, once.
    #[test]
    fn what_it_sends_arrives() {
        let hard = [
            ("links.down.loss", "0.05"),
            ("links.up.loss", "0.05"),
            ("links.down.duplicate", "0.05"),
            ("links.down.jitter", "{ spread = \"3ms\" }"),
            ("links.down.reordering", "true"),
            ("flows.mine.size", "\"300000b\""),
            ("flows.mine.delays", "true"),
            ("record.level", "\"series\""),
            ("until", "\"mine\""),
        ];
        let result = aqmlab_sim::run(&scenario(BESIDE, &hard), 0);
        let mine = &result.flows[1];
        assert_eq!(mine.delivered, 300_000);
        assert!(mine.finish.is_some());
        assert_eq!(result.groups[1].completed, 1);
        let (mean, _) = mine.delays.expect("they are measured");
        assert!((0.01..0.2).contains(&mean), "{mean}");
        let windows = result.samples.iter().filter(|sample| sample.quantity == "window_packets");
        assert!(windows.clone().count() > 5);
        assert!(windows.clone().all(|sample| sample.subject == Subject::Flow(1)));
    }

    /// Applications run over it: transfers, requests and responses.
    #[test]
    fn workloads_run_over_it() {
        for workload in [
            r#"{ kind = "transfers", size = "20kb", gap = "100ms", number = 20 }"#,
            r#"{ kind = "requests", response = "20kb", requests = 5, think = "100ms" }"#,
        ] {
            let set = [("flows.mine.workload", workload), ("until", "\"mine\"")];
            let result = aqmlab_sim::run(&scenario(BESIDE, &set), 0);
            let mine = &result.groups[1];
            assert!(mine.completed >= 5 && mine.completed == mine.started, "{workload}");
            assert!(mine.times_of("startup").is_some(), "{workload}");
        }
    }

    #[test]
    fn a_scenario_reads_back_and_wrong_ones_are_refused() {
        let with_gain = scenario(BESIDE, &[("flows.mine.endpoint.gain", "2.5")]);
        let mine = Endpoints::default().with(Box::new(WindowParams::default())).unwrap();
        let outside = Outside::endpoints(&mine);
        let again = Scenario::from_table(with_gain.to_table(), "x", &[], outside).unwrap();
        assert_eq!(again, with_gain);
        for (value, expected) in [
            ("\"windo\"", "`windo`: unknown endpoint; known: tcp, tfrc, window"),
            ("{ kind = \"window\", gain = -1.0 }", "flows.mine.endpoint.gain"),
            ("{ kind = \"tcp\", gain = 1.0 }", "flows.mine.endpoint.gain: unknown key"),
        ] {
            let set = [("flows.mine.endpoint".to_string(), parse_value(value))];
            let error = read(BESIDE, "x.toml", &set).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(mine.with(Box::new(WindowParams::default())).is_err(), "the name is taken");
    }
}
