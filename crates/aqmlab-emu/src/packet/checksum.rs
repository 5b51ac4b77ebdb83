//! Internet checksum (RFC 1071) and its incremental update (RFC 1624).

/// Returns the sum of the 16-bit words, not folded.
pub fn sum(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(2);
    let mut total: u64 =
        words.by_ref().map(|word| u64::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    if let [last] = words.remainder() {
        total += u64::from(*last) << 8;
    }
    total
}

/// Folds a sum into 16 bits; the checksum is its complement.
pub fn fold(mut total: u64) -> u16 {
    while total > 0xFFFF {
        total = (total & 0xFFFF) + (total >> 16);
    }
    total as u16
}

/// Returns the checksum after a covered word changed: equation 3 of RFC 1624, HC' = ~(~HC + ~m +
/// m').
pub fn update(checksum: u16, before: u16, after: u16) -> u16 {
    !fold(u64::from(!checksum) + u64::from(!before) + u64::from(after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Example of RFC 1624, section 4.
    #[test]
    fn the_rfcs_example_comes_out() {
        assert_eq!(update(0xDD2F, 0x5555, 0x3285), 0x0000);
    }

    proptest! {
        #[test]
        fn an_update_is_a_new_computation(
            mut bytes in prop::collection::vec(any::<u8>(), 2..80),
            place in any::<prop::sample::Index>(),
            after in any::<u16>(),
        ) {
            // All-zero bytes cannot distinguish the checksums 0xFFFF and 0x0000.
            bytes[0] |= 1;
            let at = place.index(bytes.len() / 2) * 2;
            let before = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
            let updated = update(!fold(sum(&bytes)), before, after);
            bytes[at..at + 2].copy_from_slice(&after.to_be_bytes());
            let expected = !fold(sum(&bytes));
            let is_zero = bytes.iter().all(|byte| *byte == 0);
            prop_assert!(updated == expected || is_zero, "{updated:x} {expected:x}");
        }
    }
}
