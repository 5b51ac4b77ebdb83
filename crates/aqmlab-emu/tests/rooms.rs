//! The order of the rooms in lib.rs: arrows between them go one way.

#[path = "../../rooms.rs"]
#[allow(dead_code)]
mod rooms;

/// From below; each may use those before it.
const ORDER: [&str; 18] = [
    "errors",
    "addresses",
    "packet",
    "sys",
    "changes",
    "path",
    "replay",
    "routing",
    "nat",
    "observe",
    "live",
    "params",
    "report",
    "spaces",
    "steward",
    "shell",
    "topology",
    "traffic",
];

#[test]
fn no_room_uses_one_above_it() {
    rooms::check(env!("CARGO_MANIFEST_DIR"), &ORDER);
}
