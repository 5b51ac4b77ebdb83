//! How a scenario names disciplines and presets.

use alloc::vec::Vec;

use aqmlab_core::{Entry, Preset};

use crate::discipline::QueueConfig;

/// All disciplines.
pub fn entries() -> Vec<Entry> {
    QueueConfig::entries()
}

/// All presets.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "hred",
        of: "red",
        settings: &[
            ("min_threshold", "3p"),
            ("max_threshold", "40p"),
            ("weight", "0.02"),
            ("max_p", "0.65"),
            ("mean_packet", "1500b"),
            ("limit", "100p"),
        ],
        summary: "Harsh RED: RED that answers slow start in time on a slow link",
        source: "Järvinen and Kojo 2014, table I",
    },
    Preset {
        name: "hred-aggressive",
        of: "red",
        settings: &[
            ("min_threshold", "3p"),
            ("max_threshold", "40p"),
            ("weight", "0.04"),
            ("max_p", "0.65"),
            ("mean_packet", "1500b"),
            ("limit", "100p"),
        ],
        summary: "Harsh RED with twice the weight: shorter queues, less throughput",
        source: "Järvinen and Kojo 2014, table I",
    },
    Preset {
        name: "red-ns2",
        of: "red",
        settings: &[
            ("min_threshold", "auto"),
            ("max_threshold", "auto"),
            ("weight", "auto"),
            ("bottom", "auto"),
            ("by_size", "true"),
            ("mark_p", "0.1"),
            ("limit", "25000b"),
        ],
        summary: "RED as ns-2.35 runs it if nothing is set: in bytes, configured by the link's rate",
        source: "ns-2.35, ns-default.tcl; limit_ 50 times mean_pktsize_ 500",
    },
    Preset {
        name: "ared",
        of: "red",
        settings: &[
            ("adaptive", "floyd"),
            ("min_threshold", "auto"),
            ("max_threshold", "auto"),
            ("weight", "auto"),
        ],
        summary: "Adaptive RED: max_p keeps the average in the middle, the link's rate sets the rest",
        source: "Floyd, Gummadi and Shenker 2001, sections 4 to 6",
    },
    Preset {
        name: "nlred",
        of: "red",
        settings: &[("shape", "quadratic"), ("gentle", "false"), ("wait", "false")],
        summary: "Nonlinear RED: the drop probability grows with the square",
        source: "Zhou, Yeung and Li 2006, section 3.1",
    },
    Preset {
        name: "pi2-2016",
        of: "pi2",
        settings: &[
            ("target", "20ms"),
            ("tupdate", "32ms"),
            ("alpha", "0.3125"),
            ("beta", "3.125"),
        ],
        summary: "PI2 with the numbers of its first years: 20 ms, gains 5/16 and 50/16",
        source: "the authors' Linux qdisc before RFC 9332: 80/256, 800/256, 32 ms, 20 ms",
    },
];

/// How a name of another program is said here.
pub(crate) fn elsewhere(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase().replace(['-', '_'], "");
    ELSEWHERE.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours)
}

/// Names of other programs for a queue, and the names here.
const ELSEWHERE: &[(&str, &str)] = &[
    ("pfifofast", "it is `droptail` with a limit in packets: limit = \"1000p\""),
    ("fifo", "it is `droptail`"),
    ("taildrop", "it is `droptail`"),
    ("drophead", "it is `droptail` with drop = \"head\""),
    ("infinite", "it is `droptail` with limit = \"unlimited\""),
    ("tbf", "it is the link's key `shaper`"),
    ("htb", "it is the link's key `shaper`, with `queue` for its class"),
    ("fq", "a sender paces itself here: `pacing` of its transport"),
    ("netem", "its words are keys of the link: see docs/coming-from.md, From tc"),
];

#[cfg(test)]
mod tests {
    use aqmlab_core::{Table, Value};

    use super::*;

    #[test]
    fn names_of_other_programs_are_understood() {
        for (name, hint) in
            [("pfifo_fast", "limit = \"1000p\""), ("TailDrop", "`droptail`"), ("htb", "`shaper`")]
        {
            let error = QueueConfig::named(name).unwrap_err().to_string();
            assert!(error.contains(hint), "{error}");
        }
    }

    #[test]
    fn a_queue_is_a_name_or_a_table() {
        let by_name = QueueConfig::read(&"droptail".into()).unwrap();
        let mut table = Table::new();
        table.insert("discipline", "droptail".into());
        assert_eq!(QueueConfig::read(&Value::Table(table.clone())).unwrap(), by_name);
        table.insert("limit", "20p".into());
        assert_ne!(QueueConfig::read(&Value::Table(table)).unwrap(), by_name);
    }
}
