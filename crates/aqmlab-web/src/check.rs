//! Scenarios of all families of queues, and of QUIC, whose digests are equal in a page and natively.

use aqmlab_sim::run;

use crate::{json, lab};

/// Cases: queue, congestion control and ECN of the flows.
const CASES: [(&str, &str, &str); 20] = [
    ("droptail", "cubic", "off"),
    ("red", "reno", "classic"),
    ("ared", "cubic", "off"),
    ("red_linux", "reno", "off"),
    ("sred", "reno", "off"),
    ("pi", "cubic", "classic"),
    ("blue", "reno", "off"),
    ("choke", "reno", "off"),
    ("sfb", "cubic", "off"),
    ("step", "dctcp", "classic"),
    ("codel", "cubic", "off"),
    ("cobalt", "reno", "classic"),
    ("pie", "bbr", "off"),
    ("docsis_pie", "cubic", "off"),
    ("pi2", "vegas", "off"),
    ("dualpi2", "prague", "accurate"),
    ("drr", "cubic", "off"),
    ("sfq", "reno", "off"),
    ("fq_codel", "bbr3", "off"),
    ("cake", "cubic", "classic"),
];

/// Returns the scenario of a case: downloads, a call and pages, with changes during the run.
fn toml((queue, control, ecn): (&str, &str, &str)) -> String {
    format!(
        r#"duration = "6s"
seed = 7

[transport]
congestion_control = "{control}"
ecn = "{ecn}"

[links.bottleneck]
rate = "10mbit"
delay = "15ms"
queue = "{queue}"

[links.back]
rate = "100mbit"
delay = "15ms"

[flows.download]
count = 3
path = ["bottleneck"]
return_path = ["back"]

[flows.call]
path = ["bottleneck"]
return_path = ["back"]
workload = "voip"

[flows.web]
path = ["bottleneck"]
return_path = ["back"]
workload = "page"

[[changes]]
at = "2s"
key = "links.bottleneck.rate"
value = "4mbit"

[[changes]]
at = "4s"
key = "flows.late"
value = {{ path = ["bottleneck"], return_path = ["back"], count = 2 }}
"#
    )
}

/// Libraries and controllers of QUIC, each in place of the downloads' TCP.
const QUIC: [(&str, &str); 2] = [("noq", "cubic"), ("quinn", "new_reno")];

/// Returns the names and TOML texts of all cases.
fn cases() -> impl Iterator<Item = (String, String)> {
    let quic = QUIC.map(|(stack, controller)| {
        let endpoint =
            format!(r#"{{ kind = "quic", stack = "{stack}", controller = "{controller}" }}"#);
        let text = toml(("fq_codel", "cubic", "off"));
        (
            stack.to_string(),
            text.replace("count = 3\n", &format!("count = 3\nendpoint = {endpoint}\n")),
        )
    });
    CASES.map(|case| (case.0.to_string(), toml(case))).into_iter().chain(quic)
}

/// Returns name, TOML text and digest of each case, as JSON.
///
/// # Errors
/// Returns an error if a case is not a valid scenario: a bug.
pub fn all() -> aqmlab_core::Result<String> {
    let mut answers = Vec::new();
    for (name, text) in cases() {
        let scenario = lab::parse(&text, &name)?;
        let digest = format!("{:016x}", run(&scenario, 0).digest());
        let answer = [("toml", json::text(&text)), ("digest", json::text(&digest))];
        answers.push((name, json::object(answer)));
    }
    Ok(json::object(answers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_run_and_no_two_are_alike() {
        let answer = all().unwrap();
        let digests: std::collections::BTreeSet<&str> =
            answer.split("\"digest\":\"").skip(1).map(|rest| &rest[..16]).collect();
        assert_eq!(digests.len(), CASES.len() + QUIC.len());
    }
}
