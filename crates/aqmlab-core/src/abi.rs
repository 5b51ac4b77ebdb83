//! C ABI of components in shared libraries: the parts that queue disciplines and congestion controls
//! share. `aqmlab_aqm::abi` and `aqmlab_tcp::abi` have the tables of functions.
//!
//! # Model
//! A library exports a function that returns its tables by index: one `#[repr(C)]` table for each
//! exported type, which begins with a [`Header`]. The loader compares version, size and layout
//! before it reads anything else. All functions are `extern "C"`; arguments are numbers,
//! `#[repr(C)]` structs and pointers to them, never slices, trait objects or `Option`s of structs,
//! whose layouts differ between compilers.
//!
//! Text is copied into [`Text`] on both sides, so that no side frees or reads memory of the other.
//! The loader keeps parameters as text and passes all of them to each function that needs them.
//!
//! # Panics
//! Each function catches panics of the library's code and returns [`FAULT`]; [`Parameters::fault`]
//! then returns place and message of the thread's last one.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::string::{String, ToString};
use std::sync::Once;
use std::vec::Vec;

use crate::component::Component;
use crate::error::{Error, Result};
use crate::params::TABLE;
use crate::tcp_header::{SackOption, TcpHeader};
use crate::time::{Span, Time};
use crate::value::Value;

/// Version of the ABI. Any change of a table, struct or rule of these modules has another.
pub const VERSION: u32 = 1;

/// Answers of functions: no, yes (or done), or a panic.
pub const NO: u32 = 0;
/// Yes, or done.
pub const YES: u32 = 1;
/// The code of the library has panicked.
pub const FAULT: u32 = 2;

/// Time of a timer that is not set.
pub const NEVER: u64 = u64::MAX;

/// First fields of every table.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// [`VERSION`] of the crates that the library was built with.
    pub version: u32,
    /// Size of the table in bytes.
    pub size: u32,
    /// Checksum of the layouts of all structs that pass the boundary.
    pub layout: u64,
    name: [u8; 64],
}

impl Header {
    /// Header of a table of type `T`.
    ///
    /// # Panics
    /// Panics, when compiled, if the name has more than 64 bytes.
    pub const fn of<T>(name: &str, layout: u64) -> Self {
        let (mut bytes, mut i) = ([0; 64], 0);
        while i < name.len() {
            bytes[i] = name.as_bytes()[i];
            i += 1;
        }
        Header { version: VERSION, size: size_of::<T>() as u32, layout, name: bytes }
    }
    /// Returns the name under which the type is exported.
    pub fn name(&self) -> String {
        let end = self.name.iter().position(|byte| *byte == 0).unwrap_or(self.name.len());
        String::from_utf8_lossy(&self.name[..end]).into_owned()
    }
}

/// Text of limited length, copied.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct Text {
    len: u32,
    bytes: [u8; Self::MOST],
}

impl Text {
    /// Largest length in bytes; longer texts are cut.
    pub const MOST: usize = 4092;
    /// Separates the fields of a text (the unit separator of ASCII).
    const SEPARATOR: char = '\u{1f}';

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        let bytes = &self.bytes[..(self.len as usize).min(Self::MOST)];
        core::str::from_utf8(bytes).unwrap_or("(text that is not UTF-8)")
    }
    /// Returns the fields of the text.
    pub fn fields(&self) -> Vec<&str> {
        self.as_str().split(Self::SEPARATOR).collect()
    }
    /// A text of several fields.
    pub fn of_fields<'a>(fields: impl IntoIterator<Item = &'a str>) -> Self {
        let fields: Vec<&str> = fields.into_iter().collect();
        Text::from(fields.join(Self::SEPARATOR.encode_utf8(&mut [0; 4])).as_str())
    }
}

impl Default for Text {
    fn default() -> Self {
        Text { len: 0, bytes: [0; Self::MOST] }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        let mut end = text.len().min(Self::MOST);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut copy = Text { len: end as u32, ..Text::default() };
        copy.bytes[..end].copy_from_slice(&text.as_bytes()[..end]);
        copy
    }
}

impl From<&Error> for Text {
    fn from(error: &Error) -> Self {
        let given = error.given.as_deref().unwrap_or("");
        let hint = error.hint.as_deref().unwrap_or("");
        Text::of_fields([&*error.key, given, &*error.problem, hint])
    }
}

impl From<&Text> for Error {
    fn from(text: &Text) -> Self {
        let fields = text.fields();
        let field = |place: usize| fields.get(place).map_or("", |field| *field).to_string();
        let some = |place: usize| Some(field(place)).filter(|text| !text.is_empty());
        let (key, problem) = (field(0), field(2));
        Error { key, given: some(1), problem, hint: some(3), ..Error::default() }
    }
}

/// Functions for the parameters of a component.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    /// Returns the summary.
    pub summary: extern "C" fn(&mut Text),
    /// Returns the declaration of the parameter of this index: name, kind, default, range (two
    /// fields), choices, meaning, source.
    pub spec: extern "C" fn(usize, &mut Text) -> u32,
    /// Sets one parameter: all values, key, value; returns all values, or the error.
    pub set: extern "C" fn(&Text, &Text, &Text, &mut Text) -> u32,
    /// Checks the parameters against each other; returns the error.
    pub check: extern "C" fn(&Text, &mut Text) -> u32,
    /// Returns file, line and message of the last panic.
    pub fault: extern "C" fn(&mut Text),
}

impl Parameters {
    /// Functions for the parameters `P`.
    pub const fn of<P: Component>() -> Self {
        Parameters {
            summary: summary::<P>,
            spec: spec::<P>,
            set: set::<P>,
            check: check::<P>,
            fault,
        }
    }
}

extern "C" fn summary<P: Component>(out: &mut Text) {
    *out = P::SUMMARY.into();
}

extern "C" fn spec<P: Component>(index: usize, out: &mut Text) -> u32 {
    guarded(|| {
        let specs = P::specs();
        let Some(spec) = specs.get(index) else { return false };
        let (low, high) = spec.range.clone().unwrap_or_default();
        let default = spec.default.as_deref().unwrap_or_default();
        let choices = spec.choices.join(",");
        let fields = [spec.name, spec.kind, default, &low, &high, &choices];
        *out = Text::of_fields(fields.into_iter().chain([spec.meaning, spec.source]));
        true
    })
}

extern "C" fn set<P: Component>(all: &Text, key: &Text, value: &Text, out: &mut Text) -> u32 {
    answered(out, |out| {
        let mut params = params::<P>(all)?;
        params.set(key.as_str(), &value.as_str().into())?;
        let values: Vec<String> = params.entries().iter().map(|(_, it)| it.to_string()).collect();
        *out = Text::of_fields(values.iter().map(String::as_str));
        Ok(())
    })
}

extern "C" fn check<P: Component>(all: &Text, out: &mut Text) -> u32 {
    answered(out, |_| params::<P>(all)?.check())
}

/// Parameters from their values as text.
///
/// # Errors
/// Returns the error of the first value that is not allowed, or that is not a single one.
pub fn params<P: Component>(all: &Text) -> Result<P> {
    let mut params = P::default();
    for (spec, value) in P::specs().iter().zip(all.fields()) {
        if spec.kind == TABLE {
            return Err(Error::new("a library has no parameters that are tables").at(spec.name));
        }
        params.set(spec.name, &Value::from(value))?;
    }
    Ok(params)
}

fn answered(out: &mut Text, answer: impl FnOnce(&mut Text) -> Result<()>) -> u32 {
    guarded(|| answer(out).map_err(|error| *out = Text::from(&error)).is_ok())
}

std::thread_local! {
    static LAST: RefCell<Text> = RefCell::default();
}

extern "C" fn fault(out: &mut Text) {
    *out = LAST.take();
}

/// Calls code of the library, and catches its panics.
pub fn guarded(call: impl FnOnce() -> bool) -> u32 {
    catch_unwind(AssertUnwindSafe(call)).map_or(FAULT, u32::from)
}

/// Calls code of the library that may create a value; returns none after a panic.
pub fn created<T>(call: impl FnOnce() -> Option<T>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(call)).ok().flatten()
}

/// Returns name and value of the variable of this index, of those that `observe` shows.
pub fn observed(
    index: usize,
    name: &mut Text,
    value: &mut f64,
    observe: impl FnOnce(&mut dyn FnMut(&'static str, f64)),
) -> u32 {
    guarded(|| {
        let (mut place, mut found) = (0, false);
        observe(&mut |own, now| {
            if place == index {
                (*name, *value, found) = (own.into(), now, true);
            }
            place += 1;
        });
        found
    })
}

/// Keeps the place and message of each panic for [`Parameters::fault`], instead of printing them. A
/// shared library has its own hook.
pub fn keep_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        set_hook(std::boxed::Box::new(|panic| {
            let payload = panic.payload();
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("panic");
            let (file, line) = panic.location().map_or(("", 0), |at| (at.file(), at.line()));
            LAST.set(Text::of_fields([file, &line.to_string(), text]));
        }));
    });
}

/// A value whose form in C differs, or not, from its own.
pub trait Plain: Copy {
    /// Form in C.
    type C: Copy + Default;
    /// Returns the form in C.
    fn to_c(self) -> Self::C;
    /// Returns the value.
    fn from_c(c: Self::C) -> Self;
}

macro_rules! itself {
    ($($Type:ty),+) => { $(
        impl Plain for $Type {
            type C = $Type;
            fn to_c(self) -> $Type {
                self
            }
            fn from_c(c: $Type) -> $Type {
                c
            }
        }
    )+ };
}
itself!(bool, u16, u32, u64, Time, Span, [u32; 2], [[u32; 2]; SackOption::MOST]);

/// An optional value in C.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Maybe<C> {
    is_some: bool,
    value: C,
}

impl<T: Plain> Plain for Option<T> {
    type C = Maybe<T::C>;
    fn to_c(self) -> Self::C {
        self.map_or_else(Maybe::default, |value| Maybe { is_some: true, value: value.to_c() })
    }
    fn from_c(c: Self::C) -> Self {
        c.is_some.then(|| T::from_c(c.value))
    }
}

/// Declares the forms in C of structs, with the same fields.
#[macro_export]
macro_rules! in_c {
    ($($C:ident: $Type:ident { $($field:ident: $Field:ty),+ $(,)? })+) => { $(
        #[doc = concat!("[`", stringify!($Type), "`] in C.")]
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $C {
            $( $field: <$Field as $crate::abi::Plain>::C, )+
        }
        impl $crate::abi::Plain for $Type {
            type C = $C;
            fn to_c(self) -> $C {
                $C { $( $field: $crate::abi::Plain::to_c(self.$field), )+ }
            }
            fn from_c(c: $C) -> $Type {
                $Type { $( $field: $crate::abi::Plain::from_c(c.$field), )+ }
            }
        }
    )+ };
}

in_c! {
    CTcpHeader: TcpHeader {
        ack: u32,
        flags: u16,
        payload: u32,
        timestamps: Option<[u32; 2]>,
        has_other_options: bool,
        sack: SackOption,
    }
    CSackOption: SackOption { blocks: [[u32; 2]; SackOption::MOST], count: u32 }
}
