//! BBR over simulated links.

use aqmlab_core::Value;
use aqmlab_sim::series::Subject;
use aqmlab_sim::{RunResult, Scenario, run};

const LINK: &str = r#"
    duration = "40s"
    bottleneck = "down"
    [links.down]
    rate = "10mbit"
    delay = "20ms"
    queue = { discipline = "droptail", limit = "300p" }
    [links.up]
    rate = "10mbit"
    delay = "20ms"
    [transport]
    congestion_control = "bbr"
    [record]
    level = "series"
    interval = "10ms"
"#;

fn flows(count: usize, settings: &[(&str, &str)]) -> RunResult {
    let overrides: Vec<(String, Value)> =
        settings.iter().map(|(key, text)| (key.to_string(), (*text).into())).collect();
    let mut text = LINK.to_string();
    for index in 0..count {
        text += &format!(
            "[flows.f{index}]\npath = \"down\"\nreturn_path = \"up\"\nstart = \"{}s\"\n",
            index
        );
    }
    run(&Scenario::parse(&text, "bbr", &overrides).unwrap(), 0)
}

/// What a flow or the bottleneck recorded: seconds and values.
fn series(result: &RunResult, subject: Subject, quantity: &str) -> Vec<(f64, f64)> {
    let samples = result.samples.iter();
    samples
        .filter(|sample| sample.subject == subject && sample.quantity == quantity)
        .map(|sample| (sample.time.as_secs_f64(), sample.value))
        .collect()
}

#[test]
fn look() {
    for control in ["bbr3"] {
    let result = flows(1, &[("transport.congestion_control.algorithm", control)]);
    let f = Subject::Flow(0);
    let bw = series(&result, f, "bandwidth_bps"); let g = series(&result, f, "pacing_gain");
    let rt = series(&result, f, "propagation_time_s"); let w = series(&result, f, "cwnd_bytes"); let q = series(&result, Subject::Link(0), "backlog_packets");
    for i in (1..bw.len()).filter(|i| *i < 60 || i % 53 == 0) {
        println!("{:.2} {:.3e} {:.4} gain {:.3} w {:.1} q {}", bw[i].0, bw[i].1, rt.get(i).map_or(0.0, |x| x.1), g[i].1, w[i].1/1460., q[i].1);
    }
    println!("util {} {:?} {:?}", result.links[0].utilisation, result.links[0].sojourn.quantiles, result.links[0].counts.dropped_total());
    }
    panic!();
}
