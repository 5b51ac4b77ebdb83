//! Random scenarios: any topology, discipline, control, workload, link and impairment, their
//! parameters over their whole declared ranges, each run with a bounded amount of work.
//!
//! Each run is checked for general properties (conservation, utilisation, monotonic times, an end),
//! and against a run on another thread. Failing scenarios are reduced, and printed as a TOML file.
//!
//! ```text
//! random_scenarios --seed 7 --count 300                # a digest of each run's tables
//! random_scenarios --seed 7 --count 300 --save DIR     # and the scenarios as files
//! random_scenarios --seed 7 --minutes 60               # as many as there is time for
//! random_scenarios --run DIR/*.toml                    # digests of scenarios that were saved
//! random_scenarios --ranges                            # each parameter over its whole range
//! random_scenarios --count 10 --broken                 # with a queue that loses packets
//! ```
//!
//! Digests are comparable between builds if the scenarios are: save them with one, run them with
//! the other.
#![allow(clippy::disallowed_methods, reason = "a program, not the engine")]

mod broken;
mod check;
mod draw;
mod generate;
mod laws;
mod ranges;
mod shrink;
mod trial;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aqmlab_core::{Error, Result, Table};
use aqmlab_sim::rate::InputFile;
use aqmlab_sim::scenario::{parse_document, to_toml};
use aqmlab_sim::{Outside, Scenario};

use crate::trial::{Outcome, Trial};

/// The files that scenarios may name; they are written beside those that are saved.
const TRACE: &str = "random.trace";
const COLUMNS: &str = "random.csv";
const FILES: [(&str, &str); 2] = [
    (TRACE, "1\n1\n4\n5\n9\n9\n9\n30\n31\n200\n1200\n"),
    (COLUMNS, "time,value\n0,5\n0.7,0\n1.5,20\n3,1.25\n3.001,100\n"),
];

fn read_file(name: &str) -> Result<Arc<InputFile>> {
    let known = FILES.iter().find(|(known, _)| *known == name);
    let (_, content) = known.ok_or_else(|| Error::new("there is no such file").in_file(name))?;
    Ok(Arc::new(InputFile::new(content.as_bytes().to_vec())))
}

fn parse(table: &Table) -> Result<Scenario> {
    let disciplines = broken::disciplines();
    let outside = Outside { disciplines: &disciplines, ..Outside::files(&read_file) };
    Scenario::from_table(table.clone(), "scenario", &[], outside)
}

/// What the command line says.
#[derive(Default)]
struct Options {
    seed: u64,
    from: u64,
    count: u64,
    minutes: Option<f64>,
    seconds: f64,
    save: Option<String>,
    run: Vec<String>,
    ranges: bool,
    broken: bool,
}

fn options() -> Option<Options> {
    let mut options = Options { seed: 1, count: 100, seconds: 20.0, ..Options::default() };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seed" => options.seed = arguments.next()?.parse().ok()?,
            "--from" => options.from = arguments.next()?.parse().ok()?,
            "--count" => options.count = arguments.next()?.parse().ok()?,
            "--minutes" => options.minutes = Some(arguments.next()?.parse().ok()?),
            "--seconds" => options.seconds = arguments.next()?.parse().ok()?,
            "--save" => options.save = Some(arguments.next()?),
            "--ranges" => options.ranges = true,
            "--broken" => options.broken = true,
            "--run" => options.run.extend(arguments.by_ref()),
            _ => return None,
        }
    }
    Some(options)
}

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(shrink::TRY) {
        return shrink::try_standard_input();
    }
    let Some(options) = options() else {
        eprintln!(
            "random_scenarios [--seed S] [--from K] [--count N | --minutes M] [--seconds EACH] \
             [--save DIR] [--broken] | --run FILES | --ranges"
        );
        return ExitCode::from(2);
    };
    if !options.run.is_empty() {
        return run_files(&options.run);
    }
    if options.ranges {
        let (tried, failed) = ranges::all(Duration::from_secs_f64(options.seconds * 6.0));
        eprintln!("{tried} values; {failed} failed");
        return if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    }
    if let Some(folder) = &options.save {
        for (name, content) in FILES {
            std::fs::write(format!("{folder}/{name}"), content).expect("the folder is there");
        }
    }
    let start = Instant::now();
    let mut tally = Tally::default();
    let last = options.minutes.map_or(options.from + options.count, |_| u64::MAX);
    for number in options.from..last {
        if options.minutes.is_some_and(|most| start.elapsed().as_secs_f64() > most * 60.0) {
            break;
        }
        one(&options, number, &mut tally);
    }
    let Tally { run, work, too_much, failed } = tally;
    eprintln!(
        "seed {}: {run} scenarios in {:.0} s, {work} events; {too_much} with too many at one moment; \
         {failed} failed",
        options.seed,
        start.elapsed().as_secs_f64()
    );
    if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

#[derive(Default)]
struct Tally {
    run: u64,
    work: u64,
    too_much: u64,
    failed: u64,
}

/// Runs the scenario of this number, shortened until it is little work.
fn one(options: &Options, number: u64, tally: &mut Tally) {
    let patience = Duration::from_secs_f64(options.seconds);
    let mut table = generate::scenario(options.seed, number);
    if options.broken {
        broken::plant(&mut table);
    }
    let (table, outcome) = trial::shortened(table, patience);
    tally.run += 1;
    match outcome {
        Outcome::Done(Trial { digest, events, .. }) => {
            tally.work += events;
            println!("{number:06} {digest:016x}");
            if let Some(folder) = &options.save {
                let name = format!("{folder}/{number:06}.toml");
                std::fs::write(name, to_toml(&table)).expect("the folder is there");
            }
        }
        Outcome::TooMuch => {
            tally.too_much += 1;
            println!("{number:06} -");
        }
        Outcome::Failed(problem) => {
            tally.failed += 1;
            println!("{number:06} FAILED: {problem}");
            let small = shrink::shrink(table, &problem, patience);
            println!("{}", to_toml(&small));
        }
    }
}

/// Prints the digest of each scenario.
fn run_files(files: &[String]) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for file in files {
        let name = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".toml");
        let text = std::fs::read_to_string(file).expect("a file of a scenario");
        let scenario = parse_document(&text).and_then(|table| parse(&table));
        match scenario.map_err(|error| error.to_string()).and_then(trial::plain) {
            Ok(Trial { digest, .. }) => println!("{name} {digest:016x}"),
            Err(problem) => {
                println!("{name} FAILED: {problem}");
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}
