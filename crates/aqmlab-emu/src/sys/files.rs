//! Kernel interfaces that are files instead of system calls.
// Simulations must not read files; this crate is the input and output side.
#![allow(clippy::disallowed_methods)]

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, Ipv4Addr};

use super::process::{mount, unmount};
use super::{check, owned};

/// Writes to a file of `/proc`.
pub fn set(path: &str, text: &str) -> io::Result<()> {
    fs::write(path, text)
}

/// Opens the network namespace of this process, which remains while the file is open.
pub fn network() -> io::Result<File> {
    File::open("/proc/self/ns/net")
}

/// Opens the network namespace of another process.
pub fn network_of(pid: u32) -> io::Result<File> {
    File::open(format!("/proc/{pid}/ns/net"))
}

/// Returns whether two files refer to the same namespace.
pub fn is_same(one: &File, other: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (one, other) = (one.metadata()?, other.metadata()?);
    Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
}

/// Returns the congestion controls of the kernel's TCP.
pub fn congestion_controls() -> io::Result<Vec<String>> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
    Ok(text.split_whitespace().map(str::to_string).collect())
}

/// Returns a TCP counter of this process' network namespace (`nstat`), 0 if the kernel does not
/// have it.
pub fn tcp_count(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/net/netstat").unwrap_or_default();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("TcpExt:"));
    let (names, counts) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let mut pairs = names.split_whitespace().zip(counts.split_whitespace());
    pairs.find(|(known, _)| *known == name).and_then(|(_, count)| count.parse().ok()).unwrap_or(0)
}

/// Creates a file in memory; it ends when no process, including children, has it open.
pub fn memory_file(name: &str) -> io::Result<File> {
    let name = CString::new(name)?;
    // SAFETY: the name ends with a zero byte and outlives the call.
    let fd = check(unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) })?;
    Ok(File::from(owned(fd)))
}

/// Returns the number of threads of this process.
pub fn threads() -> usize {
    fs::read_dir("/proc/self/task").map_or(1, Iterator::count)
}

/// Returns the name servers of the machine.
pub fn name_servers() -> Vec<IpAddr> {
    let text = fs::read_to_string(RESOLV_CONF).unwrap_or_default();
    let words = text.lines().filter_map(|line| line.strip_prefix("nameserver"));
    // An address may be followed by a zone.
    words.filter_map(|word| word.split('%').next()?.trim().parse().ok()).collect()
}

/// Returns the machine's configuration of names, with another name server and all else kept: domains
/// to search, and options.
pub fn names_from(server: Ipv4Addr) -> String {
    let text = fs::read_to_string(RESOLV_CONF).unwrap_or_default();
    let kept = text.lines().filter(|line| !line.starts_with("nameserver"));
    let kept: String = kept.flat_map(|line| [line, "\n"]).collect();
    format!("{kept}nameserver {server}\n")
}

/// Configuration file of name servers.
pub const RESOLV_CONF: &str = "/etc/resolv.conf";

/// Replaces the contents of a file, in this mount namespace only. `/tmp` must exist, and is covered
/// for a moment.
pub fn cover(path: &str, text: &str) -> io::Result<()> {
    const PLACE: &str = "/tmp";
    mount("tmpfs", PLACE, Some("tmpfs"))?;
    let file = format!("{PLACE}/text");
    let covered = fs::write(&file, text).and_then(|()| mount(&file, path, None));
    unmount(PLACE)?;
    covered
}

/// Returns the packets that a device of this process' network namespace dropped because its queue
/// was full; 0 if the device does not exist.
pub fn dropped(device: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/net/dev").unwrap_or_default();
    let line = text.lines().find_map(|line| line.trim().strip_prefix(device)?.strip_prefix(':'));
    // Columns: eight receive counters, then packets, bytes, errors and drops of transmission.
    line.and_then(|line| line.split_whitespace().nth(11)?.parse().ok()).unwrap_or(0)
}

/// Returns the names of the interfaces in this process' network namespace.
pub fn interfaces() -> Vec<String> {
    let text = fs::read_to_string("/proc/self/net/dev").unwrap_or_default();
    let lines = text.lines().skip(2).filter_map(|line| line.split_once(':'));
    lines.map(|(name, _)| name.trim().to_string()).collect()
}
