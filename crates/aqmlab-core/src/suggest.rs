//! The nearest right name, for error messages.

/// The candidate that `given` was most likely meant to be, if one is near.
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_lowercase();
    candidates
        .into_iter()
        .map(|name| (score(&given, &name.to_lowercase()), name))
        .filter(|(score, _)| *score >= 0.6)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// 1 for equal names, about 0 for unrelated ones; a name that starts with
/// the other (`int`, `interval`) counts as near. Without `std` only that counts.
fn score(given: &str, name: &str) -> f64 {
    #[cfg(feature = "std")]
    let similar = strsim::normalized_damerau_levenshtein(given, name);
    #[cfg(not(feature = "std"))]
    let similar = f64::from(u8::from(given == name));
    let prefix = given.len() >= 3 && (name.starts_with(given) || given.starts_with(name));
    if prefix { similar.max(0.8) } else { similar }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_and_prefixes_find_their_name() {
        let names = ["target", "interval", "limit", "ecn"];
        assert_eq!(nearest("traget", names), Some("target"));
        assert_eq!(nearest("int", names), Some("interval"));
        assert_eq!(nearest("Limit", names), Some("limit"));
        assert_eq!(nearest("colour", names), None);
    }
}
