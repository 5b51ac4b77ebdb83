//! Layer order of lib.rs: dependencies point downwards only.

#[path = "../../layers.rs"]
#[allow(dead_code)]
mod layers;

/// The numbered list of lib.rs has the layers, from the lowest up.
#[test]
fn no_layer_uses_one_above_it() {
    let listed = include_str!("../src/lib.rs").lines().filter_map(|line| {
        let (number, text) = line.strip_prefix("//! ")?.split_once(". ")?;
        number.parse::<u8>().is_ok().then(|| text.split('`').nth(1).expect("the name of a layer"))
    });
    layers::check(env!("CARGO_MANIFEST_DIR"), &listed.collect::<Vec<_>>());
}
