//! Null cryptography beside true TLS: `cargo test -p aqmlab-quic --features tls --test tls --
//! --ignored --nocapture` prints the table of docs/quic.md.

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

/// Prints means over the seeds and relative differences with their intervals (`t` returns the
/// quantile of Student's t for the degrees of freedom), none of which may be all beyond 1 %. Adds
/// seeds up to `most` while an interval reaches beyond 1 %.
fn compare(library: Library, controller: Controller, [few, most]: [i64; 2], t: fn(f64) -> f64) {
    let null = aqmlab_quic::endpoints().unwrap();
    let tls = aqmlab_quic::endpoints_with_tls(library).unwrap();
    for queue in ["droptail", "codel", "fq_codel"] {
        let of_seed =
            |seed| [&null, &tls].map(|each| measured(library, controller, queue, seed, each));
        let (mut runs, mut seeds, mut is_open) = (Vec::new(), few, true);
        let mut row = String::new();
        while is_open {
            runs.extend((runs.len() as i64 + 1..=seeds).map(of_seed));
            let name = format!("{}:{}, {queue}", library.to_text(), controller.to_text());
            row = format!("| {name} | {seeds} |");
            is_open = false;
            for (place, scale) in [(0, 1e-6), (1, 1e3)] {
                let [null, tls, difference, half] = estimates(&runs, place, t);
                let [shown, within] = [difference, half].map(|each| 100.0 * each);
                let [null, tls] = [null, tls].map(|each| scale * each);
                row += &format!(" {null:.2} | {tls:.2} | {shown:+.2} ± {within:.2} |");
                assert!(difference.abs() - half < 0.01, "{row}");
                is_open |= difference.abs() + half > 0.01;
            }
            seeds *= 2;
            is_open &= seeds <= most;
        }
        println!("{row}");
    }
}

/// Returns both means, the relative difference, and the half length of its interval.
fn estimates(runs: &[[[f64; 2]; 2]], place: usize, t: fn(f64) -> f64) -> [f64; 4] {
    let count = runs.len() as f64;
    let mean = |of: &dyn Fn(&[[f64; 2]; 2]) -> f64| runs.iter().map(of).sum::<f64>() / count;
    let [null, tls] = [0, 1].map(|end| mean(&|run| run[end][place]));
    let off = |run: &[[f64; 2]; 2]| (run[1][place] - run[0][place]) / null;
    let difference = mean(&off);
    let square = mean(&|run| (off(run) - difference) * (off(run) - difference));
    [null, tls, difference, t(count - 1.0) * (square / (count - 1.0)).sqrt()]
}

fn compare_all(seeds: [i64; 2], t: fn(f64) -> f64) {
    std::thread::scope(|scope| {
        for library in [Library::Noq, Library::Quinn] {
            for controller in [Controller::NewReno, Controller::Cubic] {
                scope.spawn(move || compare(library, controller, seeds, t));
            }
        }
    });
}

#[test]
fn cryptography_does_not_change_goodput_and_delay() {
    // 99.98 % intervals: TLS is random, and 24 comparisons shall fail in one of 200 runs by chance.
    compare_all([5, 5], |_| 13.03);
}

/// The table of docs/quic.md, with 95 % intervals (Abramowitz and Stegun, 26.7.5).
#[test]
#[ignore = "takes hours"]
fn the_table() {
    compare_all([12, 6144], |degrees| {
        let z = 1.959_964_f64;
        z + (z.powi(3) + z) / (4.0 * degrees)
            + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * degrees * degrees)
    });
}
