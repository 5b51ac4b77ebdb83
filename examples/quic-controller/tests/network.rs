//! The controller behind simulated queues. `cargo test --release` takes seconds; so does `cargo
//! test` with `[profile.test.package."*"] opt-level = 2` in Cargo.toml.

use quic_controller::MyController;

/// Every rule is judged with a 99 % interval; the table of a failure has metrics, limits, and the
/// same metrics with noq's CUBIC.
#[test]
fn my_controller_is_fit_for_the_internet() {
    let report = aqmlab_quic::evaluate(|| Box::new(MyController::default()));
    println!("{report}");
    report.assert();
    assert!(report.metric("FQ-CoDel", "delay_p95_ms").unwrap() < 25.0);
}
