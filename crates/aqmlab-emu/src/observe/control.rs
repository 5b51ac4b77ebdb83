//! External changes to a running emulator: `aqmlab set`.
//!
//! # Protocol
//! Requests use a file in memory, like `view`. Anyone permitted to inspect this process (the same
//! user, and root) finds it in `/proc`, from any terminal and any namespace. It contains the number
//! of the last request, the number of the last answer, the length of the text (eight bytes each),
//! and the text.
//!
//! A client locks the file and writes the text: for each change `set` or `replace`, the key, and
//! the value in TOML, each terminated by a zero byte. It then writes the next request number and
//! sends the process SIGURG, which a process that does not handle it ignores. The answer, a line of
//! JSON, replaces the text; the answer's number is written last.

use std::fs::File;
use std::os::unix::fs::FileExt;

use aqmlab_core::{Error, Result, Table, Time, Value};
use aqmlab_sim::scenario::{parse_value, to_json};

use crate::changes::Asked;
use crate::path::DataPath;
use crate::sys::files::memory_file;

/// Name of the file in `/proc`: `/memfd:aqmlab-set.NAME`.
const NAME: &str = "aqmlab-set";
/// Offsets of the answer's number, the length, and the text.
const ANSWERED: u64 = 8;
const LENGTH: u64 = 16;
const TEXT: u64 = 24;
/// Keys of a link that may change.
const CHANGING: [&str; 4] = ["rate", "delay", "loss", "queue"];
/// Maximum length of a request.
const MOST: u64 = 65_536;
/// Maximum length of a name.
const LONGEST_NAME: usize = 64;

/// Request file, with the routes of the path.
pub struct Control {
    file: Option<File>,
    routes: [Vec<u32>; 2],
    answered: u64,
}

impl Control {
    /// Creates the file. Without one, requests are not possible, and the emulator still runs. See
    /// [`View`](super::view::View) for `routes`.
    ///
    /// # Errors
    /// Returns an error if the name is not allowed.
    pub fn open(name: Option<&str>, routes: [Vec<u32>; 2]) -> Result<Self> {
        let is_fit = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        // An empty name has digits alone, too.
        let is_number = |name: &str| name.chars().all(|c| c.is_ascii_digit());
        let is_wrong =
            |name: &&str| name.len() > LONGEST_NAME || !name.chars().all(is_fit) || is_number(name);
        if let Some(name) = name.filter(is_wrong) {
            let allowed = "letters, digits, `-`, `_` and `.`, at most 64, and not digits alone";
            return Err(Error::not_allowed(name, allowed).at("name"));
        }
        let name = name.unwrap_or_default();
        Ok(Control { file: memory_file(&format!("{NAME}.{name}")).ok(), routes, answered: 0 })
    }

    /// Executes the pending request, if any.
    pub fn attend(&mut self, now: Time, path: &mut DataPath) {
        let Some(file) = &self.file else { return };
        let number = |place| {
            let mut bytes = [0; 8];
            file.read_exact_at(&mut bytes, place).map_or(0, |()| u64::from_le_bytes(bytes))
        };
        let request = number(0);
        if request == self.answered {
            return;
        }
        let mut text = vec![0; number(LENGTH).min(MOST) as usize];
        if file.read_exact_at(&mut text, TEXT).is_err() {
            return;
        }
        let answer = match self.asked(&text, path).and_then(|asked| path.set(now, &asked)) {
            Ok((at, made)) => {
                let of = |made: crate::changes::Made| {
                    table([
                        ("key", made.key.into()),
                        ("before", made.before),
                        ("after", made.after),
                    ])
                };
                let made = made.into_iter().map(of).collect();
                table([("time_s", Value::Float(at.as_secs_f64())), ("made", Value::List(made))])
            }
            Err(error) => {
                let known = [("given", error.given), ("hint", error.hint)];
                let mut told = vec![("problem", error.problem.into()), ("key", error.key.into())];
                told.extend(known.into_iter().filter_map(|(key, text)| Some((key, text?.into()))));
                table([("error", table(told))])
            }
        };
        let answer = to_json(&answer);
        let length = answer.len() as u64;
        // The client waits for the number, which is written last. If the file is full, it times
        // out.
        let _ = file
            .write_all_at(answer.as_bytes(), TEXT)
            .and_then(|()| file.write_all_at(&length.to_le_bytes(), LENGTH))
            .and_then(|()| file.write_all_at(&request.to_le_bytes(), ANSWERED));
        self.answered = request;
    }

    /// Parses the changes of a request, and completes their keys with links.
    fn asked(&self, text: &[u8], path: &DataPath) -> Result<Vec<Asked>> {
        let text = String::from_utf8_lossy(text);
        let words: Vec<&str> = text.split_terminator('\0').collect();
        let names: Vec<&str> = path.network.links().map(|link| link.name.as_str()).collect();
        let asked = |words: &[&str]| match words {
            [word @ ("set" | "replace"), key, value] => Ok(Asked {
                key: self.full_key(key, &names)?,
                value: parse_value(value),
                replace: *word == "replace",
            }),
            _ => Err(Error::new("a change is set or replace, a key and a value")),
        };
        words.chunks(3).map(asked).collect()
    }

    /// Completes `down.rate` to `links.NAME.rate`: by the name of the link, or by its direction if
    /// that has one link.
    fn full_key(&self, key: &str, names: &[&str]) -> Result<String> {
        let rest = key.strip_prefix("links.").unwrap_or(key);
        let (link, rest) = rest.split_once('.').unwrap_or((rest, ""));
        let what = rest.split('.').next().unwrap_or(rest);
        let direction = match link {
            "down" => &self.routes[0][..],
            "up" => &self.routes[1][..],
            _ => &[],
        };
        let name = match direction {
            _ if names.contains(&link) => link,
            [only] => names[*only as usize],
            _ => {
                let mut error = Error::unknown("link", link, names.iter().copied()).at(key);
                error.hint.get_or_insert(format!("a key begins with a link: {}.rate", names[0]));
                return Err(error);
            }
        };
        match CHANGING.contains(&what) {
            true => Ok(format!("links.{name}.{rest}")),
            false => Err(Error { given: None, ..Error::unknown("key", what, CHANGING).at(key) }),
        }
    }
}

fn table(entries: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    let entries = entries.into_iter().map(|(key, value)| (key.to_string(), value));
    Value::Table(entries.collect::<Table>())
}
