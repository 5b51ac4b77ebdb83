//! Named settings of workloads: data, not code.

use aqmlab_core::Preset;

/// All presets.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "rfc7928-web",
        of: "page",
        settings: &[
            ("objects", "50"),
            ("size", "pareto(shape=1.2, scale=1kb, cap=1mb)"),
            ("document", "10kb"),
            ("connections", "6"),
            ("streams", "1"),
            ("keep", "all"),
            ("dns", "false"),
            ("tls", "0"),
            ("think", "0s"),
        ],
        summary: "RFC 7928's web: pages of 50 objects over six connections, one after another",
        source: "RFC 7928, section 7.2; the law of the sizes, of at least 1 kB, is this program's",
    },
    Preset {
        name: "rrul-be",
        of: "rrul",
        settings: &[("classes", "[cs0]"), ("probes", "[cs0, cs0, cs0, cs0]")],
        summary: "Flent's response under load, all of it best effort",
        source: "flent, rrul_be",
    },
];
