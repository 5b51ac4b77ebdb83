//! Identifies the engine by its sources: `AQMLAB_ENGINE`, 16 hexadecimal digits.
//!
//! Results depend on the sources of these crates and the versions of these packages only, not on
//! compiler, profile or machine. Machines that build the same sources therefore have the same
//! engine. It is a 64-bit FNV-1a hash: it distinguishes builds and protects against nothing.
#![allow(clippy::disallowed_methods)] // A build script reads files.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Crates that compute results; the emulator and the recorded cases do not.
const CRATES: [&str; 6] =
    ["aqmlab-core", "aqmlab-aqm", "aqmlab-tcp", "aqmlab-sim", "aqmlab-quic", "aqmlab-py"];
/// Packages that compute results.
const PACKAGES: [&str; 4] = ["bytes", "libm", "noq-proto", "quinn-proto"];

struct Hash(u64);

impl Hash {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }
}

fn main() {
    let crates = Path::new(&env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("..");
    let mut hash = Hash(0xCBF2_9CE4_8422_2325);
    for name in CRATES {
        let folder = crates.join(name).join("src");
        println!("cargo::rerun-if-changed={}", folder.display());
        let mut files = Vec::new();
        collect(&folder, &mut files);
        files.sort();
        for file in files {
            let place = file.strip_prefix(&folder).unwrap().to_string_lossy().into_owned();
            hash.add(format!("{name}/{place}\0").as_bytes());
            hash.add(&fs::read(&file).unwrap());
        }
    }
    let lock = crates.join("../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let lock = fs::read_to_string(&lock).unwrap_or_default();
    for package in lock.split("[[package]]") {
        let mut lines = package.trim().lines();
        let (name, version) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        if PACKAGES.iter().any(|each| name == format!("name = \"{each}\"")) {
            hash.add(format!("{name}\n{version}\n").as_bytes());
        }
    }
    println!("cargo::rustc-env=AQMLAB_ENGINE={:016x}", hash.0);
}

/// Collects the Rust files of a folder, without those that hold tests only.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap_or_default().to_owned();
        if name == "tests" {
            continue;
        }
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
}
