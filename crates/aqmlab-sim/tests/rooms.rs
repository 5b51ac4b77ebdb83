//! The order of the rooms in lib.rs: arrows between them go one way.
#![allow(clippy::disallowed_methods)] // it reads the sources

use std::fs;
use std::path::{Path, PathBuf};

/// From below; each may use those before it.
const ORDER: [&str; 9] = [
    "rate",
    "impairment",
    "network",
    "closed",
    "endpoints",
    "workload",
    "scenario",
    "capture",
    "run",
];

/// All sources below a folder, but for those of tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_stem().unwrap().to_string_lossy().into_owned();
        if entry.is_dir() {
            found.extend(sources(&entry));
        } else if !name.ends_with("tests") && name != "testing" {
            found.push(entry);
        }
    }
    found
}

/// A source without its comments and tests.
fn code_of(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.collect::<Vec<_>>().join("\n")
}

/// The rooms that a source names, without its tests.
fn rooms_in(text: &str) -> Vec<String> {
    let code = code_of(text);
    let named = code.split("crate::").skip(1);
    let word = |rest: &str| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    named.map(word).collect()
}

#[test]
fn no_room_uses_one_above_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let place = |room: &str| ORDER.iter().position(|known| *known == room);
    let (mut upward, mut arrows) = (Vec::new(), 0);
    for source in sources(&root) {
        let room = source.strip_prefix(&root).unwrap().iter().next().unwrap();
        let room = room.to_string_lossy().replace(".rs", "");
        if room == "lib" {
            continue;
        }
        let own = place(&room).unwrap_or_else(|| panic!("{room} has no place in the order"));
        for used in rooms_in(&fs::read_to_string(&source).unwrap()) {
            arrows += 1;
            if place(&used).is_none_or(|used| used > own) {
                upward.push(format!("{}: {used}", source.display()));
            }
        }
    }
    assert!(upward.is_empty(), "{upward:#?}");
    assert!(arrows > 50, "{arrows} arrows: were the sources read?");
}

/// A time that may never come is a `Deadline` or an `Option`: a number in its place can be
/// counted towards. The one left is the end of a network that has none.
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
    assert_eq!(rooms_in(text), ["network", "rate"]);
}
