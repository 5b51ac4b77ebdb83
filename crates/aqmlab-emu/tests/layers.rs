//! Layer order of lib.rs: dependencies point downwards only.

#[path = "../../layers.rs"]
#[allow(dead_code)]
mod layers;

/// From the lowest up; a layer may use those before it.
const ORDER: [&str; 17] = [
    "errors",
    "addresses",
    "packet",
    "sys",
    "changes",
    "path",
    "routing",
    "nat",
    "observe",
    "live",
    "params",
    "report",
    "netns",
    "background_tasks",
    "shell",
    "topology",
    "traffic",
];

#[test]
fn no_layer_uses_one_above_it() {
    layers::check(env!("CARGO_MANIFEST_DIR"), &ORDER);
}
