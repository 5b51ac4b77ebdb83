//! Null cryptography beside true TLS: `cargo test -p aqmlab-quic --features tls --test tls --
//! --nocapture` prints the table of docs/quic.md.

use aqmlab_core::{ParamType, Value};
use aqmlab_quic::{Controller, Library};
use aqmlab_sim::endpoints::Endpoints;
use aqmlab_sim::{Outside, Scenario, run};

const PATH: &str = r#"
    duration = "20s"
    record.warmup = "5s"
    links.down = { rate = "20mbit", delay = "20ms", queue = "fq_codel" }
    links.up = { rate = "20mbit", delay = "20ms" }
    flows.own = { count = 2, start = { uniform = ["0s", "1s"] }, path = "down", return_path = "up", endpoint = "quic" }
"#;

/// Goodput of both flows, and 95th percentile of the time in the queue.
fn measured(
    library: Library,
    controller: Controller,
    queue: &str,
    seed: i64,
    outside: &Endpoints,
) -> [f64; 2] {
    let endpoint = |key: &str| format!("flows.own.endpoint.{key}");
    let set = [
        ("links.down.queue".to_string(), Value::from(queue)),
        (endpoint("stack"), library.to_text().as_str().into()),
        (endpoint("controller"), controller.to_text().as_str().into()),
        ("seed".to_string(), Value::Integer(seed)),
    ];
    let scenario = Scenario::parse_with(PATH, "path", &set, Outside::endpoints(outside)).unwrap();
    let result = run(&scenario, 0);
    let goodput = result.flows.iter().map(|flow| flow.goodput).sum();
    [goodput, result.links[0].sojourn.quantiles[3]]
}

/// Quantile of Student's t for a 95 % interval of [`SEEDS`] differences.
const T: f64 = 2.776;
const SEEDS: i64 = 5;

/// Prints means over the seeds, and relative differences with their intervals, which must lie
/// within 1 %.
fn compare(library: Library, controller: Controller) {
    let null = aqmlab_quic::endpoints().unwrap();
    let tls = aqmlab_quic::endpoints_with_tls(library).unwrap();
    for queue in ["droptail", "codel", "fq_codel"] {
        let of_seed =
            |seed| [&null, &tls].map(|each| measured(library, controller, queue, seed, each));
        let runs: Vec<_> = (1..=SEEDS).map(of_seed).collect();
        let mut row = format!("| {}:{}, {queue} |", library.to_text(), controller.to_text());
        for (place, scale) in [(0, 1e-6), (1, 1e3)] {
            let mean = |of: &dyn Fn(&[[f64; 2]; 2]) -> f64| {
                runs.iter().map(of).sum::<f64>() / SEEDS as f64
            };
            let [null, tls] = [0, 1].map(|end| mean(&|run| run[end][place]));
            let off = |run: &[[f64; 2]; 2]| (run[1][place] - run[0][place]) / null;
            let difference = mean(&off);
            let square = mean(&|run| (off(run) - difference) * (off(run) - difference));
            let half = T * (square / (SEEDS - 1) as f64).sqrt();
            let [shown, within] = [difference, half].map(|each| 100.0 * each);
            let [null, tls] = [null, tls].map(|each| scale * each);
            row += &format!(" {null:.2} | {tls:.2} | {shown:+.3} ± {within:.3} |");
            assert!(difference.abs() + half < 0.01, "{row}");
        }
        println!("{row}");
    }
}

#[test]
fn cryptography_does_not_change_goodput_and_delay() {
    std::thread::scope(|scope| {
        for library in [Library::Noq, Library::Quinn] {
            for controller in [Controller::NewReno, Controller::Cubic] {
                scope.spawn(move || compare(library, controller));
            }
        }
    });
}
