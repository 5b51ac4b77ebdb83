//! Loads queue disciplines and congestion controls from shared libraries with the C ABI of
//! `aqmlab_aqm::abi` and `aqmlab_tcp::abi`.
//!
//! # What the unsafe code relies on
//! 1. The library was built from those modules, through their `export!` macros. The loader compares
//!    version, size and layout of each table; it cannot compare anything else. A library is native
//!    code with the rights of the process: it is trusted as the program itself.
//! 2. A library is never unloaded, so its functions and tables live as long as the process.
//! 3. A pointer to a queue or control comes from `build` or `copy` of the same table, belongs to one
//!    [`Handle`], which is neither `Clone` nor `Sync`, and is freed once, when that is dropped.
//!    `&mut` of the handle gives `&mut` to the library, `&` gives `&`. Both sides declare such
//!    pointers with types that have the same ABI: references and boxes there, `NonNull` here.
//!
//! # Failures
//! A panic of the library ends the run by a panic with a [`Failure`].

mod control;
mod library;
mod queue;

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::fmt;
use std::panic::resume_unwind;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

use aqmlab_aqm::Discipline;
use aqmlab_core::abi::{FAULT, NO, Parameters, Text, YES};
use aqmlab_core::{AnyComponent, Error, ParamSpec, Result, Time, Value};
use aqmlab_tcp::congestion::ControlParams;

/// Key of the library's digest in the canonical form of a scenario.
pub const CODE: &str = "code";

/// Checks the value of [`CODE`] in a canonical form that is read again.
///
/// # Errors
/// Returns an error if the code is another now.
pub fn check_code(code: &str, value: &Value) -> Result<()> {
    match value {
        Value::Text(text) if text == code => Ok(()),
        other => {
            let allowed = format!("{code}: the code has changed since");
            Err(Error::not_allowed(other, allowed).at(CODE))
        }
    }
}

/// Panic payload that ends a run after a panic in a library.
#[derive(Debug)]
pub struct Failure {
    /// True for a queue discipline, false for a congestion control.
    pub is_queue: bool,
    /// Place, type, method, time and message.
    pub message: String,
}

/// File of a library, as Python found it.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// Path.
    pub path: &'a Path,
    /// Digest of its content.
    pub code: &'a str,
    /// Name in scenarios: `libmine.so:Mine`.
    pub name: &'a str,
}

/// Returns the queue discipline of this name, with its default parameters.
///
/// # Errors
/// Returns an error if the library cannot be loaded or has no such discipline.
pub fn queue(file: File<'_>) -> Result<Box<dyn Discipline>> {
    Ok(Box::new(queue::Config::load(file)?))
}

/// Returns the congestion control of this name, with its default parameters.
///
/// # Errors
/// Returns an error if the library cannot be loaded or has no such control.
pub fn control(file: File<'_>) -> Result<Box<dyn ControlParams>> {
    Ok(Box::new(control::Config::load(file)?))
}

/// Description of an exported type: whether it is a queue, its summary and its parameters.
///
/// # Errors
/// Returns an error if the library cannot be loaded or has no such type.
pub fn describe(file: File<'_>) -> Result<(bool, String, Vec<ParamSpec>)> {
    let told = |is_queue, type_: &Type| (is_queue, type_.summary.clone(), type_.specs.clone());
    match queue::Config::load(file) {
        Ok(config) => Ok(told(true, &config.type_)),
        Err(error) => {
            control::Config::load(file).map_or(Err(error), |it| Ok(told(false, &it.type_)))
        }
    }
}

/// Exported type.
struct Type {
    name: String,
    code: String,
    is_queue: bool,
    functions: Parameters,
    summary: String,
    specs: Vec<ParamSpec>,
}

impl Type {
    fn new(file: File<'_>, is_queue: bool, functions: Parameters) -> Result<Self> {
        let mut text = Text::default();
        (functions.summary)(&mut text);
        let summary = text.as_str().to_string();
        let mut specs = Vec::new();
        while (functions.spec)(specs.len(), &mut text) != NO {
            let [name, kind, default, low, high, choices, meaning, source] = text.fields()[..]
            else {
                return Err(Error::new("its parameters have no description").given(file.name));
            };
            let choices: Vec<_> =
                choices.split(',').filter(|it| !it.is_empty()).map(kept).collect();
            specs.push(ParamSpec {
                name: kept(name),
                kind: kept(kind),
                default: Some(default.to_string()),
                range: (!low.is_empty()).then(|| (low.to_string(), high.to_string())),
                choices: choices.leak(),
                meaning: kept(meaning),
                source: kept(source),
            });
        }
        let (name, code) = (file.name.to_string(), file.code.to_string());
        Ok(Type { name, code, is_queue, functions, summary, specs })
    }

    /// Describes the last panic of the library.
    fn problem(&self, method: &str) -> String {
        let mut text = Text::default();
        (self.functions.fault)(&mut text);
        let (place, problem) = match text.fields()[..] {
            [file, line, problem] => (format!("{file}, line {line}: "), problem),
            _ => (String::new(), "it returned no result"),
        };
        let short = self.name.rsplit(':').next().unwrap_or_default();
        format!("{place}{short}.{method}: panic: {problem}")
    }

    /// Ends the run with the last panic of the library.
    fn fail(&self, method: &str, now: Time) -> ! {
        self.end(self.problem(&format!("{method} at {} s", now.as_secs_f64())))
    }

    /// Answer of a function that checks parameters; its panic is an error too.
    fn checked(&self, answer: u32, out: &Text, method: &str) -> Result<()> {
        match answer {
            YES => Ok(()),
            FAULT => Err(Error::new(self.problem(method))),
            _ => Err(Error::from(out)),
        }
    }

    /// Ends the run.
    fn end(&self, message: String) -> ! {
        resume_unwind(Box::new(Failure { is_queue: self.is_queue, message }))
    }

    /// Returns whether the answer of a call is yes; ends the run after a panic.
    #[inline]
    fn answer(&self, answer: u32, method: &str, now: Time) -> bool {
        if answer == FAULT {
            self.fail(method, now);
        }
        answer != NO
    }
}

/// Exported type with values of its parameters.
struct Config<T> {
    type_: Arc<Type>,
    /// Functions of its kind.
    table: T,
    /// Values, as text.
    values: Text,
}

impl<T: Copy> Clone for Config<T> {
    fn clone(&self) -> Self {
        let type_ = Arc::clone(&self.type_);
        Config { type_, table: self.table, values: self.values.clone() }
    }
}

impl<T> fmt::Debug for Config<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.type_.name, self.values.fields())
    }
}

impl<T: Send + Sync + 'static> Config<T> {
    fn new(file: File<'_>, is_queue: bool, functions: Parameters, table: T) -> Result<Self> {
        let type_ = Arc::new(Type::new(file, is_queue, functions)?);
        let values = Text::of_fields(type_.specs.iter().flat_map(|spec| spec.default.as_deref()));
        let config = Config { type_, table, values };
        config.check()?;
        Ok(config)
    }
}

impl<T: Send + Sync + 'static> AnyComponent for Config<T> {
    fn name(&self) -> &str {
        &self.type_.name
    }
    fn set(&mut self, key: &str, value: &Value) -> Result<()> {
        if key == CODE {
            return check_code(&self.type_.code, value);
        }
        let (set, mut out) = (self.type_.functions.set, Text::default());
        let answer = set(&self.values, &key.into(), &(*value.to_string()).into(), &mut out);
        self.type_.checked(answer, &out, "set")?;
        self.values = out;
        Ok(())
    }
    fn check(&self) -> Result<()> {
        let mut out = Text::default();
        let answer = (self.type_.functions.check)(&self.values, &mut out);
        self.type_.checked(answer, &out, "check")
    }
    fn entries(&self) -> Vec<(&str, Value)> {
        let code = std::iter::once((CODE, self.type_.code.as_str().into()));
        let names = self.type_.specs.iter().map(|spec| spec.name);
        code.chain(names.zip(self.values.fields().into_iter().map(Value::from))).collect()
    }
}

/// Queue or control of a library, which owns it until it is dropped.
struct Handle {
    pointer: NonNull<c_void>,
    free: unsafe extern "C" fn(NonNull<c_void>),
}

// SAFETY: both traits of what libraries export, `QueueDiscipline` and `CongestionControl`, require
// `Send`.
unsafe impl Send for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: `build` or `copy` returned the pointer (rule 3); nothing uses it after this.
        unsafe { (self.free)(self.pointer) }
    }
}

/// Returns a copy of the text that is never freed: libraries have few names, which results contain
/// for ever.
pub fn kept(text: &str) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut kept = KEPT.lock().expect("no holder of this lock panics");
    if let Some(known) = kept.get(text) {
        return known;
    }
    let new: &'static str = Box::leak(text.to_string().into_boxed_str());
    kept.insert(new);
    new
}

/// Quantities that recordings and steps of a run contain for a link, and for a flow.
const OF_LINKS: [&str; 13] = [
    "backlog_packets",
    "backlog_bytes",
    "dropped",
    "marked",
    "ingress_bps",
    "throughput_bps",
    "delivered_bytes",
    "delivered_packets",
    "sojourn_mean_s",
    "sojourn_max_s",
    "capacity_bps",
    "driver_bytes",
    "driver_limit_bytes",
];
const OF_FLOWS: [&str; 5] =
    ["cwnd_bytes", "in_flight_bytes", "smoothed_rtt_s", "goodput_bps", "delivered_bytes"];

/// Returns the name of a state variable of a queue or control, for recordings.
///
/// # Errors
/// Returns an error if each link or flow has a quantity of this name.
pub fn quantity(name: &str, is_queue: bool) -> std::result::Result<&'static str, String> {
    let (built_in, owner) =
        if is_queue { (&OF_LINKS[..], "link") } else { (&OF_FLOWS[..], "flow") };
    if !built_in.contains(&name) {
        return Ok(kept(name));
    }
    Err(format!("`{name}` is a quantity that aqmlab records for each {owner}: use another name"))
}

/// Table of a kind: its exported function, and its header.
///
/// # Safety
/// The type must be `#[repr(C)]`, begin with a `Header` and contain only function pointers after
/// it.
unsafe trait Functions: Copy + 'static {
    /// Exported function, which returns the table of an index.
    const SYMBOL: &'static str;
    /// Checksum of the structs that pass the boundary.
    const LAYOUT: u64;
    /// Name of the kind.
    const WHAT: &'static str;
}

// SAFETY: see its declaration.
unsafe impl Functions for aqmlab_aqm::abi::Loaded {
    const SYMBOL: &'static str = "aqmlab_queues";
    const LAYOUT: u64 = aqmlab_aqm::abi::LAYOUT;
    const WHAT: &'static str = "queue discipline";
}

// SAFETY: see its declaration.
unsafe impl Functions for aqmlab_tcp::abi::Loaded {
    const SYMBOL: &'static str = "aqmlab_controls";
    const LAYOUT: u64 = aqmlab_tcp::abi::LAYOUT;
    const WHAT: &'static str = "congestion control";
}

/// Passes on the state variables of a queue or control.
fn observed(
    type_: &Type,
    now: Time,
    see: &mut dyn FnMut(&'static str, f64),
    read: impl Fn(usize, &mut Text, &mut f64) -> u32,
) {
    let (mut name, mut value) = (Text::default(), 0.0);
    for index in 0.. {
        if !type_.answer(read(index, &mut name, &mut value), "observe", now) {
            return;
        }
        match quantity(name.as_str(), type_.is_queue) {
            Ok(name) => see(name, value),
            Err(problem) => type_.end(format!("{}: observe: {problem}", type_.name)),
        }
    }
}

#[cfg(test)]
mod tests;
