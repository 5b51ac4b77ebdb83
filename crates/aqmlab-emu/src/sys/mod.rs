//! System calls, each behind a safe function: the only unsafe code.
//!
//! Manual section 2 documents the calls; the callers document their purpose.

pub mod bpf;
pub mod device;
pub mod epoll;
pub mod files;
pub mod process;
pub mod socket;
pub mod tcp;
pub mod time;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use aqmlab_core::Error;

/// Returns an error for a failed operation of the kernel.
pub(crate) fn failed(what: &str, error: &io::Error) -> Error {
    Error::new(format!("{what}: {error}"))
}

/// Converts the result of a call that returns -1 and sets `errno` on failure.
pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Takes ownership of a new descriptor.
pub(crate) fn owned(fd: RawFd) -> OwnedFd {
    // SAFETY: the caller received it from the kernel and passes it to no other owner.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Opens a socket, closed on exec.
pub(crate) fn open_socket(
    family: libc::c_int,
    kind: libc::c_int,
    protocol: libc::c_int,
) -> io::Result<OwnedFd> {
    // SAFETY: the arguments are numbers.
    check(unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) }).map(owned)
}

/// Creates a pair of connected sockets that preserve message boundaries, closed on exec.
pub fn socket_pair() -> io::Result<[OwnedFd; 2]> {
    let mut fds = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: the array has room for the two descriptors.
    check(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, fds.as_mut_ptr()) })?;
    Ok(fds.map(owned))
}

/// Sends a message with an optional descriptor.
pub fn send(socket: BorrowedFd<'_>, text: &[u8], fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut part = libc::iovec { iov_base: text.as_ptr() as *mut _, iov_len: text.len() };
    let mut control = [0u64; 4];
    // SAFETY: a zeroed message header is valid and empty; the pointers set below outlive the call;
    // `control` is aligned and has room for one descriptor.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        if let Some(fd) = fd {
            let size = size_of::<RawFd>() as u32;
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(size) as _;
            let head = libc::CMSG_FIRSTHDR(&message);
            (*head).cmsg_level = libc::SOL_SOCKET;
            (*head).cmsg_type = libc::SCM_RIGHTS;
            (*head).cmsg_len = libc::CMSG_LEN(size) as _;
            libc::CMSG_DATA(head).cast::<RawFd>().write_unaligned(fd.as_raw_fd());
        }
        check(libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_NOSIGNAL) as _)?;
    }
    Ok(())
}

/// Receives a message with its descriptor, if any. An empty message means that the other end is
/// closed.
pub fn receive(socket: BorrowedFd<'_>) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let mut text = vec![0u8; 4096];
    let mut part = libc::iovec { iov_base: text.as_mut_ptr().cast(), iov_len: text.len() };
    let mut control = [0u64; 4];
    // SAFETY: as in `send`; a received descriptor gets an owner at once.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        let size = loop {
            let size = libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC);
            match check(size as _) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        text.truncate(size as usize);
        let head = libc::CMSG_FIRSTHDR(&message);
        let has_fd = !head.is_null()
            && (*head).cmsg_level == libc::SOL_SOCKET
            && (*head).cmsg_type == libc::SCM_RIGHTS;
        let fd = has_fd.then(|| owned(libc::CMSG_DATA(head).cast::<RawFd>().read_unaligned()));
        Ok((text, fd))
    }
}
