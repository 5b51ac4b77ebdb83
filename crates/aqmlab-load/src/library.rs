//! Shared libraries: opening, and reading of their tables.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Mutex;
use std::{fs, process};

use aqmlab_core::abi::{Header, VERSION};
use aqmlab_core::{Error, Result};

use crate::{File, Functions};

/// Machine of this program in the header of a 64-bit ELF file (System V ABI, `e_machine`), if
/// known.
const MACHINE: Option<u64> = match () {
    () if cfg!(target_arch = "x86_64") => Some(62),
    () if cfg!(target_arch = "aarch64") => Some(183),
    () => None,
};

#[derive(Default)]
struct Open {
    /// Addresses of handles, by digest.
    handles: HashMap<String, usize>,
    paths: HashSet<PathBuf>,
}

/// Returns the table of the type that the file's name selects.
pub fn table<T: Functions>(file: File<'_>) -> Result<T> {
    let handle = open(file).map_err(|problem| Error::new(problem).given(file.name))?;
    let symbol = CString::new(T::SYMBOL).expect("no symbol contains a zero");
    // SAFETY: the handle is of an open library, and the symbol ends with a zero.
    let found = unsafe { libc::dlsym(handle.as_ptr(), symbol.as_ptr()) };
    if found.is_null() {
        let problem = format!("this library exports no {}", T::WHAT);
        let hint = format!("it has no symbol `{}`: export one with `export!`", T::SYMBOL);
        return Err(Error::new(problem).given(file.name).hint(hint));
    }
    // SAFETY: `export!` declares this symbol as such a function (rule 1).
    let tables =
        unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(usize) -> *const Header>(found) };
    let wanted = file.name.rsplit(':').next().unwrap_or_default();
    let mut names = Vec::new();
    while let Some(header) = NonNull::new(tables(names.len()).cast_mut()) {
        // SAFETY: a table begins with its version, in every version of the ABI.
        let version = unsafe { header.cast::<u32>().read() };
        if version != VERSION {
            return Err(other_build(file, &format!("ABI version {version}, not {VERSION}")));
        }
        // SAFETY: a table of this version begins with a header, and is never freed (rule 2).
        let found = unsafe { header.as_ref() };
        if (found.size as usize, found.layout) != (size_of::<T>(), T::LAYOUT) {
            return Err(other_build(file, "another layout of its structs"));
        }
        let name = found.name();
        if name == wanted {
            // SAFETY: version, size and layout say that it is a `T` (rule 1), which is `Copy`.
            return Ok(unsafe { header.cast::<T>().read() });
        }
        names.push(name);
    }
    Err(Error::unknown(T::WHAT, wanted, names.iter().map(String::as_str)))
}

fn other_build(file: File<'_>, difference: &str) -> Error {
    let problem = format!("this library was built for another aqmlab: it has {difference}");
    Error::new(problem).given(file.name).hint("build it with the crates of this version")
}

/// Opens a library, or returns it if it is open.
fn open(file: File<'_>) -> std::result::Result<NonNull<c_void>, String> {
    static OPEN: Mutex<Option<Open>> = Mutex::new(None);
    let mut open = OPEN.lock().expect("no holder of this lock panics");
    let open = open.get_or_insert_default();
    if let Some(known) = open.handles.get(file.code) {
        return Ok(NonNull::new(*known as *mut c_void).expect("only open libraries are kept"));
    }
    check_file(file.path)?;
    // The system returns the old library for the path of one that it has opened before.
    let handle = if open.paths.contains(file.path) {
        let copy = std::env::temp_dir().join(format!("aqmlab-{}-{}.so", process::id(), file.code));
        fs::copy(file.path, &copy).map_err(|error| format!("{}: {error}", copy.display()))?;
        let opened = dlopen(&copy);
        drop(fs::remove_file(&copy));
        opened?
    } else {
        dlopen(file.path)?
    };
    open.handles.insert(file.code.to_string(), handle.as_ptr() as usize);
    open.paths.insert(file.path.to_path_buf());
    Ok(handle)
}

fn dlopen(path: &Path) -> std::result::Result<NonNull<c_void>, String> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: the name ends with a zero. Code that the library runs when it is opened is trusted as
    // the rest of it (rule 1).
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    NonNull::new(handle).ok_or_else(|| {
        // SAFETY: after a failure dlerror returns a text, which lasts until this thread's next call.
        let problem = unsafe { CStr::from_ptr(libc::dlerror()) };
        format!("this is not a shared library that can be loaded: {}", problem.to_string_lossy())
    })
}

/// Refuses an ELF file of another machine, for which `dlopen` reports a missing file, and one that
/// is cut short: the process would end when it reads a page that is missing.
fn check_file(path: &Path) -> std::result::Result<(), String> {
    let content = fs::read(path).map_err(|error| format!("cannot be read: {error}"))?;
    let (true, Some(own)) = (content.starts_with(b"\x7fELF"), MACHINE) else { return Ok(()) };
    let [machine, entry, entries] = [18, 54, 56].map(|at| number(&content, at, 2));
    if let Some(machine) = machine.filter(|machine| *machine != own) {
        return Err(format!(
            "this library is for another processor (ELF machine {machine}, not {own})"
        ));
    }
    let end = |index| {
        let header = number(&content, 32, 8)?.checked_add(entry? * index)?;
        let [start, length] = [8, 32].map(|field| number(&content, header.checked_add(field)?, 8));
        start?.checked_add(length?)
    };
    let is_whole = |index| end(index).is_some_and(|end| end <= content.len() as u64);
    match entries.is_some_and(|entries| (0..entries).all(is_whole)) {
        true => Ok(()),
        false => Err("this library is cut short: build or copy it again".into()),
    }
}

/// Returns the number in so many bytes of a file, the lowest first; none past its end.
fn number(content: &[u8], at: u64, bytes: usize) -> Option<u64> {
    let field = content.get(usize::try_from(at).ok()?..)?.get(..bytes)?;
    Some(field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}
