//! A failure made small: keys are taken out as long as it fails in the same way.

use std::io::{Read, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use aqmlab_core::{Table, Value};
use aqmlab_sim::scenario::{parse_document, to_toml};

use crate::parse;
use crate::trial::{Outcome, TOO_LONG, shortened};

/// The argument that asks for one trial of the scenario on standard input.
pub const TRY: &str = "--try";
/// Time limit for the reduction of one failure.
const MOST: Duration = Duration::from_secs(120);

/// The smallest table found that fails as `table` does. Trials are processes: one that does not
/// end is killed.
pub fn shrink(table: Table, problem: &str, patience: Duration) -> Table {
    let start = Instant::now();
    let mut small = table;
    loop {
        let mut is_smaller = false;
        for path in paths(&small, "") {
            if start.elapsed() > MOST {
                return small;
            }
            let mut next = small.clone();
            remove(&mut next, &path);
            if parse(&next).is_ok() && is_same(&fails(&next, patience), problem) {
                small = next;
                is_smaller = true;
            }
        }
        if !is_smaller {
            return small;
        }
    }
}

/// Returns true if two failures are equal except for numbers in the message.
fn is_same(found: &Option<String>, problem: &str) -> bool {
    let words = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "");
    found.as_ref().is_some_and(|found| {
        // Of a panic the place says all.
        match (found.split_once(": "), problem.split_once(": ")) {
            (Some((place, _)), Some((other, _))) if place.contains(".rs:") => place == other,
            _ => words(found) == words(problem),
        }
    })
}

/// All keys, the outer before those in them.
fn paths(table: &Table, prefix: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (key, value) in table.iter() {
        let path = format!("{prefix}{key}");
        found.push(path.clone());
        if let Value::Table(inner) = value {
            found.extend(paths(inner, &format!("{path}.")));
        }
    }
    found
}

fn remove(table: &mut Table, path: &str) {
    match path.split_once('.') {
        None => drop(table.remove(path)),
        Some((head, rest)) => {
            let Some(Value::Table(inner)) = table.get(head) else { return };
            let mut inner = inner.clone();
            remove(&mut inner, rest);
            table.insert(head, Value::Table(inner));
        }
    }
}

/// What a process that tries it says is wrong.
fn fails(table: &Table, patience: Duration) -> Option<String> {
    let program = std::env::current_exe().ok()?;
    let mut child = Command::new(program)
        .args([TRY, &patience.as_secs_f64().to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    child.stdin.take()?.write_all(to_toml(table).as_bytes()).ok()?;
    // It gives up by itself, unless it is out of control.
    let start = Instant::now();
    while start.elapsed() < patience * 2 {
        if child.try_wait().ok()?.is_some() {
            let mut said = String::new();
            child.stdout.take()?.read_to_string(&mut said).ok()?;
            return (!said.is_empty()).then(|| said.trim_end().to_string());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let _ = child.kill();
    let _ = child.wait();
    Some(TOO_LONG.to_string())
}

/// Tests the scenario on standard input, and prints the failure, if any.
pub fn try_standard_input() -> ExitCode {
    let patience = std::env::args().nth(2).and_then(|text| text.parse().ok()).unwrap_or(20.0);
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).expect("text");
    let Ok(table) = parse_document(&text) else { return ExitCode::from(2) };
    if let (_, Outcome::Failed(problem)) = shortened(table, Duration::from_secs_f64(patience)) {
        println!("{problem}");
    }
    // A thread may still be at work.
    std::process::exit(0)
}
