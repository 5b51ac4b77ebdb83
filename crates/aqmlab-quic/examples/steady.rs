//! Fifty QUIC flows at 100 Mbit/s through CoDel, scenario (c) of docs/engine.md, to be measured
//! with `perf stat`: `steady STACK CONTROLLER [KEY=VALUE ...]`.

use aqmlab_sim::scenario::parse_value;
use aqmlab_sim::{Outside, Scenario, run};

const STEADY: &str = r#"
    duration = "60s"
    links.down = { rate = "100mbit", delay = "25ms", queue = "codel" }
    links.up = { rate = "100mbit", delay = "25ms", queue = { discipline = "droptail", limit = "10000p" } }
    flows.bulk = { count = 50, path = "down", return_path = "up", endpoint = "quic" }
"#;

#[allow(clippy::disallowed_methods)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let mut set = Vec::new();
    for key in ["stack", "controller"] {
        let word = words.next().ok_or("usage: steady STACK CONTROLLER [KEY=VALUE ...]")?;
        set.push((format!("flows.bulk.endpoint.{key}"), word.as_str().into()));
    }
    for word in words {
        let (key, value) = word.split_once('=').ok_or("settings are KEY=VALUE")?;
        set.push((key.to_string(), parse_value(value)));
    }
    let endpoints = aqmlab_quic::endpoints()?;
    let scenario = Scenario::parse_with(STEADY, "steady", &set, Outside::endpoints(&endpoints))?;
    let result = run(&scenario, 0);
    let link = &result.links[0];
    println!("{} packets, utilisation {:.4}", link.counts.delivered, link.utilisation);
    Ok(())
}
