//! Statistics and options of the kernel's TCP connections.

use std::ffi::CStr;
use std::io;
use std::os::fd::AsRawFd;

use super::socket::{get, set};

/// Counters of a connection from `tcp_info` (Linux's `tcp.h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// Smoothed RTT in microseconds.
    pub rtt: u32,
    /// Retransmitted segments.
    pub retransmits: u32,
    /// Acknowledged bytes.
    pub bytes_acked: u64,
    /// Data segments sent, including retransmissions.
    pub data_segments: u32,
    /// Retransmission timeouts; not reported by kernels before 6.7.
    pub timeouts: u16,
}

/// Requested bytes of `tcp_info`; kernels return the fields they have.
const INFO: usize = 248;

/// Returns the counters of a connection.
pub fn info(socket: &impl AsRawFd) -> io::Result<Info> {
    let mut bytes = [0u8; INFO];
    get(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
    let four = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four"));
    let eight = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight"));
    Ok(Info {
        rtt: four(68),
        retransmits: four(100),
        bytes_acked: eight(120),
        data_segments: four(156),
        timeouts: four(240) as u16,
    })
}

/// Sets the congestion control of a connection, or of a listener's connections. Call it before
/// opening the connection: a later change keeps the previous control's settings, such as BBR's
/// pacing.
pub fn set_control(socket: &impl AsRawFd, name: &CStr) -> io::Result<()> {
    // `TCP_CA_NAME_MAX`, zeros at the end included.
    let mut bytes = [0u8; 16];
    let most = bytes.len() - 1;
    bytes[..most].iter_mut().zip(name.to_bytes()).for_each(|(to, from)| *to = *from);
    set(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, bytes)
}

/// Limits the unsent bytes that the kernel buffers for a connection.
pub fn set_unsent(socket: &impl AsRawFd, bytes: u32) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes as i32)
}
