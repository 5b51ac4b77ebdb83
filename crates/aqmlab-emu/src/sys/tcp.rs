//! What the kernel says of its TCP connections, and what can be asked of it.

use std::ffi::CStr;
use std::io;
use std::os::fd::AsRawFd;

use super::check;
use super::socket::set;

/// Counts of a connection, out of `tcp_info` (Linux's `tcp.h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// Microseconds, smoothed.
    pub rtt: u32,
    /// Segments sent again.
    pub retransmits: u32,
    /// Bytes acknowledged.
    pub bytes_acked: u64,
    /// Segments with data sent, those sent again included.
    pub data_segments: u32,
    /// Retransmission timeouts; kernels before 6.7 do not tell.
    pub timeouts: u16,
}

/// Bytes of `tcp_info` that are asked for; kernels give as many as they have.
const INFO: usize = 248;

/// Asks the kernel for the counts of a connection.
pub fn info(socket: &impl AsRawFd) -> io::Result<Info> {
    let mut bytes = [0u8; INFO];
    let mut size = INFO as libc::socklen_t;
    // SAFETY: there is room for as many bytes as are asked for.
    check(unsafe {
        let to = bytes.as_mut_ptr().cast();
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, to, &mut size)
    })?;
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

/// Chooses the congestion control of a connection, or of those that a listener
/// takes in. Before it is opened: one that is chosen later keeps what another has set up, such as
/// BBR's pacing.
pub fn set_control(socket: &impl AsRawFd, name: &CStr) -> io::Result<()> {
    let size = name.count_bytes() as libc::socklen_t;
    // SAFETY: the name outlives the call.
    check(unsafe {
        let name = name.as_ptr().cast();
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, name, size)
    })
    .map(drop)
}

/// Has the kernel take only so many bytes of a connection beyond those it has sent.
pub fn set_unsent(socket: &impl AsRawFd, bytes: u32) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes as i32)
}

/// Sets the class of service of what a socket sends.
pub fn set_class(socket: &impl AsRawFd, dscp: u8) -> io::Result<()> {
    set(socket, libc::IPPROTO_IP, libc::IP_TOS, i32::from(dscp) << 2)
}
