//! Twenty scenarios of all families of queues, whose digests are equal in a page and natively.

use aqmlab_sim::{Outside, Scenario, run};

use crate::json;

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

/// Returns name, TOML text and digest of each case, as JSON.
///
/// # Errors
/// Returns an error if a case is not a valid scenario: a bug.
pub fn all() -> aqmlab_core::Result<String> {
    let mut answers = Vec::new();
    for case in CASES {
        let text = toml(case);
        let scenario = Scenario::parse_with(&text, case.0, &[], Outside::default())?;
        let digest = format!("{:016x}", run(&scenario, 0).digest());
        let answer = [("toml", json::text(&text)), ("digest", json::text(&digest))];
        answers.push((case.0, json::object(answer)));
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
        assert_eq!(digests.len(), CASES.len());
    }
}
