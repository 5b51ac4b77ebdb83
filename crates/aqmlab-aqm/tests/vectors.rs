//! Replays what reference implementations did, packet by packet: every
//! verdict and every time has to be the same.

mod replay;

use aqmlab_core::{Table, Value};
use replay::Case;

/// Replays all cases of one algorithm; `configure` makes the settings of each
/// from the parameters that were given to the reference.
fn replay_all(algorithm: &str, configure: impl Fn(&Case) -> Settings) {
    let cases = Case::all(algorithm);
    assert!(!cases.is_empty(), "{algorithm}: no cases");
    let failures: Vec<String> =
        cases.iter().filter_map(|case| case.replay(&configure(case).0).err()).collect();
    let summary = format!("{algorithm}: {} of {} cases differ", failures.len(), cases.len());
    assert!(failures.is_empty(), "{summary}\n{}", failures.join("\n"));
}

/// The settings of a queue, from the parameters of a case.
struct Settings(Table);

impl Settings {
    fn of(discipline: &str) -> Self {
        Settings([("discipline".to_string(), Value::from(discipline))].into_iter().collect())
    }
    fn set(mut self, key: &str, text: impl ToString) -> Self {
        self.0.insert(key, text.to_string().into());
        self
    }
    /// The reference's parameter `name`, with a unit behind it.
    fn take(self, case: &Case, key: &str, name: &str, unit: &str) -> Self {
        match case.get(name) {
            Some(value) => self.set(key, format!("{value}{unit}")),
            None => self,
        }
    }
    /// The same for switches, which are 0 or 1 there.
    fn switch(self, case: &Case, key: &str, name: &str) -> Self {
        match case.get(name) {
            Some(value) => self.set(key, value != 0.0),
            None => self,
        }
    }
}

fn codel(case: &Case, variant: &str) -> Settings {
    Settings::of("codel")
        .set("variant", variant)
        .take(case, "target", "target_us", "us")
        .take(case, "interval", "interval_us", "us")
        .take(case, "limit", "limit", "p")
        .take(case, "ce_threshold", "ce_threshold_us", "us")
        .switch(case, "ecn", "ecn")
}

#[test]
fn codel_rfc8289() {
    replay_all("codel_rfc8289", |case| codel(case, "rfc8289"));
}
#[test]
fn codel_linux() {
    replay_all("codel_linux", |case| codel(case, "linux"));
}
#[test]
fn codel_ns2_2012() {
    replay_all("codel_ns2_2012", |case| codel(case, "ns2-2012"));
}
#[test]
fn codel_ns2_experimental() {
    replay_all("codel_ns2_experimental", |case| codel(case, "ns2-2013"));
}

fn red(case: &Case) -> Settings {
    let unit = if case.get("queue_in_bytes") == Some(1.0) { "b" } else { "p" };
    let mean = case.get("mean_pktsize").unwrap();
    let length = |name: &str| {
        let packets = case.get(name).unwrap();
        format!("{}{unit}", if unit == "b" { packets * mean } else { packets })
    };
    let mut settings = Settings::of("red")
        .set("min_threshold", length("thresh_packets"))
        .set("max_threshold", length("maxthresh_packets"))
        .set("limit", length("limit"))
        .set("max_p", 1.0 / case.get("linterm").unwrap())
        .take(case, "weight", "q_weight", "")
        .take(case, "mean_packet", "mean_pktsize", "b")
        .take(case, "alpha", "alpha", "")
        .take(case, "beta", "beta", "")
        .take(case, "adapt_interval", "interval_s", "s")
        .take(case, "top", "top", "")
        .take(case, "bottom", "bottom", "")
        .switch(case, "gentle", "gentle")
        .switch(case, "wait", "wait")
        .switch(case, "by_size", "bytes")
        .switch(case, "ecn", "setbit")
        .switch(case, "adaptive", "adaptive");
    if case.get("use_mark_p") == Some(1.0) {
        settings = settings.take(case, "mark_p", "mark_p", "");
    }
    settings
}

#[test]
fn red_ns2() {
    replay_all("red_ns2", red);
}
#[test]
fn red_ns2_gentle() {
    replay_all("red_ns2_gentle", red);
}
#[test]
fn red_ns2_adaptive() {
    replay_all("red_ns2_adaptive", red);
}

fn red_linux_settings(case: &Case) -> Settings {
    Settings::of("red_linux")
        .take(case, "min_threshold", "min_bytes", "b")
        .take(case, "max_threshold", "max_bytes", "b")
        .take(case, "limit", "limit_bytes", "b")
        .take(case, "wlog", "wlog", "")
        .take(case, "max_p", "probability", "")
        .take(case, "mean_packet", "avpkt", "b")
        .take(case, "bandwidth", "bandwidth_bps", "bit")
        .switch(case, "ecn", "ecn")
        .switch(case, "harddrop", "harddrop")
        .switch(case, "adaptive", "adaptive")
}

#[test]
fn red_linux() {
    replay_all("red_linux", red_linux_settings);
}
#[test]
fn red_linux_adaptive() {
    replay_all("red_linux_adaptive", red_linux_settings);
}

#[test]
fn fq_codel_linux() {
    replay_all("fq_codel_linux", |case| {
        Settings::of("fq_codel")
            .set("variant", "linux")
            .take(case, "target", "target_us", "us")
            .take(case, "interval", "interval_us", "us")
            .take(case, "limit", "limit", "p")
            .take(case, "flows", "flows", "")
            .take(case, "quantum", "quantum", "b")
            .take(case, "drop_batch", "drop_batch", "")
            .take(case, "memory_limit", "memory_limit", "b")
            .take(case, "ce_threshold", "ce_threshold_us", "us")
            .switch(case, "ecn", "ecn")
    });
}
#[test]
fn sfq_linux() {
    replay_all("sfq_linux", |case| {
        Settings::of("sfq")
            .take(case, "limit", "limit", "p")
            .take(case, "depth", "depth", "")
            .take(case, "quantum", "quantum", "b")
            .take(case, "divisor", "divisor", "")
            .take(case, "flows", "flows", "")
            .switch(case, "headdrop", "headdrop")
    });
}
#[test]
fn sfqcodel_ns2() {
    replay_all("sfqcodel_ns2", |case| {
        Settings::of("sfq_codel")
            .take(case, "target", "target_us", "us")
            .take(case, "interval", "interval_us", "us")
            .take(case, "limit", "limit", "p")
    });
}

fn pie(case: &Case, variant: &str) -> Settings {
    // The weights were given in sixteenths.
    let weight = |name: &str| case.get(name).unwrap() / 16.0;
    let delay = if case.get("dq_rate_estimator") == Some(1.0) { "rate" } else { "timestamps" };
    Settings::of("pie")
        .set("variant", variant)
        .set("delay", delay)
        .set("alpha", weight("alpha"))
        .set("beta", weight("beta"))
        .take(case, "target", "target_us", "us")
        .take(case, "tupdate", "tupdate_us", "us")
        .take(case, "limit", "limit", "p")
        .switch(case, "ecn", "ecn")
        .switch(case, "by_size", "bytemode")
}

#[test]
fn pie_linux() {
    replay_all("pie_linux", |case| pie(case, "linux"));
}
#[test]
fn pie_linux_clamped() {
    replay_all("pie_linux_clamped", |case| pie(case, "linux-clamped"));
}

fn fq_pie(case: &Case) -> Settings {
    let weight = |name: &str| case.get(name).unwrap() / 16.0;
    Settings::of("fq_pie")
        .set("alpha", weight("alpha"))
        .set("beta", weight("beta"))
        .take(case, "target", "target_us", "us")
        .take(case, "tupdate", "tupdate_us", "us")
        .take(case, "limit", "limit", "p")
        .take(case, "flows", "flows", "")
        .take(case, "quantum", "quantum", "b")
        .take(case, "ecn_prob", "ecn_prob", "")
        .switch(case, "ecn", "ecn")
        .switch(case, "by_size", "bytemode")
}

#[test]
fn fq_pie_linux() {
    replay_all("fq_pie_linux", |case| fq_pie(case).set("variant", "linux"));
}
#[test]
fn fq_pie_linux_clamped() {
    replay_all("fq_pie_linux_clamped", |case| fq_pie(case).set("variant", "linux-clamped"));
}

fn cake(case: &Case) -> Settings {
    Settings::of("cake")
        .take(case, "target", "target_us", "us")
        .take(case, "interval", "rtt_us", "us")
        .take(case, "limit", "memory_limit", "b")
}

#[test]
fn cake_besteffort_linux() {
    replay_all("cake_besteffort_linux", |case| cake(case).set("variant", "linux"));
}
#[test]
fn cake_besteffort_linux_initfix() {
    replay_all("cake_besteffort_linux_initfix", |case| cake(case).set("variant", "linux-initfix"));
}

#[test]
fn dualpi2_linux() {
    replay_all("dualpi2_linux", |case| {
        // The gains were given in 1/256 Hz.
        let gain = |name: &str| case.get(name).unwrap() / 256.0;
        Settings::of("dualpi2")
            .set("variant", "linux")
            .set("alpha", gain("alpha"))
            .set("beta", gain("beta"))
            .take(case, "target", "target_us", "us")
            .take(case, "tupdate", "tupdate_us", "us")
            .take(case, "limit", "limit", "p")
            .take(case, "coupling", "coupling", "")
            .take(case, "step", "step_thresh_us", "us")
            .take(case, "step_packets", "step_thresh_packets", "")
            .take(case, "min_qlen_step", "min_qlen_step", "")
            .take(case, "c_protection", "c_protection", "")
            .switch(case, "drop_overload", "drop_overload")
            .switch(case, "drop_early", "drop_early")
    });
}

#[test]
fn sfb_linux() {
    replay_all("sfb_linux", |case| {
        // Steps were given in units of 1/65535.
        let step = |name: &str| case.get(name).unwrap() / 65_535.0;
        Settings::of("sfb")
            .set("increment", step("increment_q16"))
            .set("decrement", step("decrement_q16"))
            .take(case, "limit", "limit", "p")
            .take(case, "max", "max", "")
            .take(case, "target", "target", "")
            .take(case, "penalty_rate", "penalty_rate", "")
            .take(case, "penalty_burst", "penalty_burst", "")
            .take(case, "rehash", "rehash_ms", "ms")
            .take(case, "warmup", "db_ms", "ms")
    });
}
