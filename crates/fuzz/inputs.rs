//! Inputs for parsers: files of a small corpus, and mutations of them (bytes changed, removed,
//! repeated and inserted). Used by the tests named `parsers` of several crates.
//!
//! `AQMLAB_INPUTS` sets the number of inputs for each parser, `AQMLAB_SEED` the seed.
#![allow(clippy::disallowed_methods)] // a test, not the engine

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use aqmlab_core::Stream;

/// Time limit for one input.
const PATIENCE: Duration = Duration::from_secs(20);
/// Inputs are truncated to this length: no parser here behaves differently beyond it.
const MOST_BYTES: usize = 20_000;

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Returns the files of the corpus, sorted by name.
fn corpus(folder: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(folder);
    let mut files: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{}", folder.display());
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

struct Mutator<'a> {
    corpus: &'a [Vec<u8>],
    /// Words that have a meaning to the parser.
    words: &'a [&'a str],
    stream: Stream,
}

impl Mutator<'_> {
    fn below(&mut self, end: usize) -> usize {
        (self.stream.uniform() * end as f64) as usize
    }

    fn input(&mut self) -> Vec<u8> {
        let index = self.below(self.corpus.len());
        let mut input = self.corpus[index].clone();
        for _ in 0..1 << self.below(4) {
            self.change(&mut input);
        }
        input.truncate(MOST_BYTES);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        let length = self.below(input.len() - at + 1).min(1 << self.below(12));
        match self.below(9) {
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 if at < input.len() => input[at] = [0, 1, 0x7F, 0x80, 0xFF, b'\n'][self.below(6)],
            2 => drop(input.drain(at..at + length)),
            3 => {
                let again: Vec<u8> = input[at..at + length].to_vec();
                let times = 1 + self.below(20);
                input.splice(at..at, again.repeat(times));
            }
            4 => input.truncate(at),
            5 => {
                let other = self.below(self.corpus.len());
                let from = self.below(self.corpus[other].len() + 1);
                let end = (from + 200).min(self.corpus[other].len());
                input.splice(at..at, self.corpus[other][from..end].iter().copied());
            }
            6 => self.change_number(input, at),
            _ => {
                let word = self.words[self.below(self.words.len())].as_bytes();
                let end = if self.below(2) == 0 { at } else { at + length.min(word.len()) };
                input.splice(at..end, word.iter().copied());
            }
        }
    }

    /// Replaces the next number.
    fn change_number(&mut self, input: &mut Vec<u8>, at: usize) {
        const NUMBERS: [&str; 12] = [
            "0",
            "-1",
            "1",
            "0.5",
            "1e308",
            "-1e-308",
            "nan",
            "inf",
            "4294967296",
            "9223372036854775807",
            "18446744073709551616",
            "1_000",
        ];
        let is_part = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
        let Some(from) = input[at..].iter().position(is_part).map(|from| at + from) else { return };
        let end =
            input[from..].iter().position(|byte| !is_part(byte)).map_or(input.len(), |n| from + n);
        let number = NUMBERS[self.below(NUMBERS.len())];
        input.splice(from..end, number.bytes());
    }
}

/// Runs a parser on the corpus and on mutations. `parse` returns whether it accepted the input, and
/// panics if the result is wrong.
///
/// # Panics
/// Panics with the input if the parser panics or takes too long. Panics if it rejects a file of the
/// corpus, or every input.
pub fn try_all(
    folder: &'static str,
    words: &'static [&'static str],
    parse: impl Fn(&[u8]) -> bool + Send + 'static,
) {
    let count = from_environment("AQMLAB_INPUTS", 5000);
    let seed = from_environment("AQMLAB_SEED", 1);
    let present = Arc::new(Mutex::new(Vec::new()));
    let (sender, receiver) = channel();
    let at_work = Arc::clone(&present);
    let worker = thread::spawn(move || {
        let corpus = corpus(folder);
        let stream = Stream::for_component(seed, 0, folder);
        let mut mutator = Mutator { corpus: &corpus, words, stream };
        for number in 0..corpus.len() as u64 + count {
            let input = match corpus.get(number as usize) {
                Some(input) => input.clone(),
                None => mutator.input(),
            };
            at_work.lock().unwrap().clone_from(&input);
            let is_taken = parse(&input);
            assert!(is_taken || number >= corpus.len() as u64, "of the corpus");
            sender.send(is_taken).unwrap();
        }
    });
    let input = || String::from_utf8_lossy(&present.lock().unwrap()).into_owned();
    let mut seen = [0, 0];
    loop {
        match receiver.recv_timeout(PATIENCE) {
            Ok(is_taken) => seen[usize::from(is_taken)] += 1,
            Err(RecvTimeoutError::Timeout) => panic!("{folder}: no end for {:?}", input()),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    if worker.join().is_err() {
        panic!("{folder}, seed {seed}: a panic for {:?}", input());
    }
    let [refused, taken] = seen;
    println!("{folder}, seed {seed}: {taken} taken, {refused} refused");
    assert!(taken > 0 && refused > 0, "{folder}: {taken} taken, {refused} refused");
}
