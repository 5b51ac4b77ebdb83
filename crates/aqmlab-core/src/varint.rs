//! Numbers in as few bytes as they need: seven bits a byte, the lowest first; all bytes but the
//! last have the highest bit.

use alloc::vec::Vec;

/// Appends a number.
pub fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes a number from the front; `None` if the slice is empty.
#[inline]
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_taken() {
        let numbers = [0, 1, 0x7f, 0x80, 300, 1 << 35, u64::MAX];
        let mut bytes = Vec::new();
        numbers.iter().for_each(|number| put(&mut bytes, *number));
        assert_eq!(bytes.len(), 1 + 1 + 1 + 2 + 2 + 6 + 10);
        let mut rest = &bytes[..];
        assert!(numbers.iter().all(|number| take(&mut rest) == Some(*number)));
        assert!(rest.is_empty() && take(&mut rest).is_none());
        assert_eq!(take(&mut &[0x80; 3][..]), None, "it does not end");
        assert_eq!(take(&mut &[0xff; 11][..]), None, "it has more than 64 bits");
    }
}
