//! SHA-256 (FIPS 180-4), the digest of scenarios.

/// Returns the first 32 bits of the fractional part of a prime's square root (`root` 2) or cube
/// root (3), computed with integers.
fn fraction(prime: u64, root: u32) -> u32 {
    // The largest x with x^root <= prime * 2^(32 * root): its low 32 bits are the fraction.
    let wanted = u128::from(prime) << (32 * root.min(3));
    let (mut low, mut high) = (0u128, 1u128 << 38);
    while low + 1 < high {
        let middle = (low + high) / 2;
        if middle.pow(root) <= wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    low as u32
}

fn primes() -> impl Iterator<Item = u64> {
    (2u64..).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0))
}

/// Returns the SHA-256 digest in hexadecimal.
pub fn sha256(content: &[u8]) -> String {
    let mut state = [0u32; 8];
    primes().zip(&mut state).for_each(|(prime, word)| *word = fraction(prime, 2));
    let mut round = [0u32; 64];
    primes().zip(&mut round).for_each(|(prime, word)| *word = fraction(prime, 3));
    let mut message = content.to_vec();
    message.push(0x80);
    message.resize(message.len().div_ceil(64) * 64, 0);
    if message.len() - content.len() < 9 {
        message.resize(message.len() + 64, 0);
    }
    let place = message.len() - 8;
    message[place..].copy_from_slice(&(content.len() as u64 * 8).to_be_bytes());
    message.chunks_exact(64).for_each(|block| compress(&mut state, block, &round));
    state.iter().map(|word| format!("{word:08x}")).collect()
}

fn compress(state: &mut [u32; 8], block: &[u8], round: &[u32; 64]) {
    let mut w = [0u32; 64];
    for (word, bytes) in w.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
    }
    for i in 16..64 {
        let (a, b) = (w[i - 15], w[i - 2]);
        let s0 = a.rotate_right(7) ^ a.rotate_right(18) ^ (a >> 3);
        let s1 = b.rotate_right(17) ^ b.rotate_right(19) ^ (b >> 10);
        w[i] = w[i - 16].wrapping_add(s0).wrapping_add(w[i - 7]).wrapping_add(s1);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for i in 0..64 {
        let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let one = h.wrapping_add(s1).wrapping_add(choice).wrapping_add(round[i]).wrapping_add(w[i]);
        let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let two = s0.wrapping_add((a & b) ^ (a & c) ^ (b & c));
        (h, g, f, e) = (g, f, e, d.wrapping_add(one));
        (d, c, b, a) = (c, b, a, one.wrapping_add(two));
    }
    for (word, new) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = word.wrapping_add(new);
    }
}

#[cfg(test)]
mod tests {
    use super::sha256;

    /// Examples of FIPS 180-4, and lengths around the end of a block.
    #[test]
    fn the_published_examples() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256(b""), empty);
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), abc);
        let two = "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1";
        assert_eq!(sha256(b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"), two);
    }
}
