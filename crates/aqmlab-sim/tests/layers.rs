//! Layer order of lib.rs: dependencies point downwards only.
#![allow(clippy::disallowed_methods)] // it reads the sources

use std::fs;
use std::path::Path;

#[path = "../../layers.rs"]
mod layers;

use layers::{check, code_of, layers_in, sources};

/// From below; each may use those before it.
const ORDER: [&str; 8] =
    ["rate", "impairment", "network", "endpoints", "workload", "scenario", "capture", "run"];

#[test]
fn no_layer_uses_one_above_it() {
    check(env!("CARGO_MANIFEST_DIR"), &ORDER);
}

/// A time that may be absent is a `Deadline` or an `Option`, because arithmetic on a special number
/// goes wrong. The only exception is the end of a network without one.
#[test]
fn no_number_stands_for_never() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for folder in [root.join("src"), root.join("../aqmlab-tcp/src")] {
        for source in sources(&folder) {
            let count = code_of(&fs::read_to_string(&source).unwrap()).matches("Time::MAX").count();
            found.extend((0..count).map(|_| source.strip_prefix(root).unwrap().to_path_buf()));
        }
    }
    assert_eq!(found, [Path::new("src/network/mod.rs")]);
}

#[test]
fn what_a_source_names_is_found() {
    let text = "use crate::network::Link;\n// crate::run::x\nfn f() { crate::rate::g() }\n\
                #[cfg(test)]\nmod tests {\n use crate::scenario::Scenario;\n}";
    assert_eq!(layers_in(text), ["network", "rate"]);
}
