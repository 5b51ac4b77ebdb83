//! Checks the order of the layers of a crate; its tests include this file.
#![allow(clippy::disallowed_methods)] // it reads the sources

use std::fs;
use std::path::{Path, PathBuf};

/// All sources below a folder, but for those of tests.
pub fn sources(folder: &Path) -> Vec<PathBuf> {
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
pub fn code_of(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.collect::<Vec<_>>().join("\n")
}

/// The layers that a source names, without its tests.
pub fn layers_in(text: &str) -> Vec<String> {
    let code = code_of(text);
    let named = code.split("crate::").skip(1);
    let word = |rest: &str| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    named.map(word).collect()
}

/// Panics if a layer of the crate uses one above it. `order` is from below.
pub fn check(crate_folder: &str, order: &[&str]) {
    let root = Path::new(crate_folder).join("src");
    let place = |layer: &str| order.iter().position(|known| *known == layer);
    let (mut upward, mut arrows) = (Vec::new(), 0);
    for source in sources(&root) {
        let layer = source.strip_prefix(&root).unwrap().iter().next().unwrap();
        let layer = layer.to_string_lossy().replace(".rs", "");
        if layer == "lib" {
            continue;
        }
        let own = place(&layer).unwrap_or_else(|| panic!("{layer} has no place in the order"));
        for used in layers_in(&fs::read_to_string(&source).unwrap()) {
            arrows += 1;
            if place(&used).is_none_or(|used| used > own) {
                upward.push(format!("{}: {used}", source.display()));
            }
        }
    }
    assert!(upward.is_empty(), "{upward:#?}");
    assert!(arrows > 50, "{arrows} arrows: were the sources read?");
}
