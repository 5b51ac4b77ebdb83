//! Small kernel programs that process packets of an interface (bpf(2), class `tcx` of Linux 6.6).
//!
//! A program is attached while its link is open. Links are descriptors, so the kernel detaches
//! programs when the process ends for any reason.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::{check, owned};

/// Linux's `bpf.h`: calls, program type, attach points.
const PROG_LOAD: libc::c_long = 5;
const LINK_CREATE: libc::c_long = 28;
const SCHED_CLS: u32 = 3;
const TCX_INGRESS: u32 = 46;
const TCX_EGRESS: u32 = 47;
/// Helper: `skb_store_bytes`.
pub const SKB_STORE_BYTES: i32 = 9;
/// Helper: `redirect(interface, flags)`.
pub const REDIRECT: i32 = 23;
/// Helper: `skb_change_head(packet, bytes, flags)`.
pub const SKB_CHANGE_HEAD: i32 = 43;
/// Helper: `redirect_neigh(interface, parameters, their size, flags)`.
pub const REDIRECT_NEIGH: i32 = 152;
/// Flag of `redirect`: as if received there.
pub const INGRESS: i32 = 1;

/// Instruction: the kernel's `struct bpf_insn`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    number: i32,
}

/// Condition of a jump: compares the register with the number.
#[derive(Clone, Copy)]
pub enum If {
    /// Equal.
    Equal = 0x15,
    /// Equal in its lower 32 bits.
    Equal32 = 0x16,
    /// Not equal.
    Other = 0x55,
    /// Greater (unsigned).
    Greater = 0x25,
    /// Less (unsigned).
    Less = 0xa5,
    /// Common bits.
    Common = 0x45,
}

/// Program builder; registers are numbers from 0 to 10.
#[derive(Default)]
pub struct Code {
    code: Vec<Instruction>,
    jumps: Vec<(usize, &'static str)>,
    labels: Vec<(&'static str, usize)>,
}

impl Code {
    fn add(mut self, code: u8, to: u8, from: u8, offset: i16, number: i32) -> Self {
        self.code.push(Instruction { code, registers: to | from << 4, offset, number });
        self
    }
    /// Sets a register to a number.
    pub fn set(self, to: u8, number: i32) -> Self {
        self.add(0xb7, to, 0, 0, number)
    }
    /// Copies a register to another.
    pub fn copy(self, to: u8, from: u8) -> Self {
        self.add(0xbf, to, from, 0, 0)
    }
    /// Adds a number to a register.
    pub fn plus(self, to: u8, number: i32) -> Self {
        self.add(0x07, to, 0, 0, number)
    }
    /// Masks a register with these bits.
    pub fn mask(self, to: u8, bits: i32) -> Self {
        self.add(0x57, to, 0, 0, bits)
    }
    /// Loads 32 bits from an address.
    pub fn load(self, to: u8, at: u8, offset: i16) -> Self {
        self.add(0x61, to, at, offset, 0)
    }
    /// Stores the lower 32 bits of a register.
    pub fn store(self, at: u8, offset: i16, from: u8) -> Self {
        self.add(0x63, at, from, offset, 0)
    }
    /// Stores the lower 16 bits of a register.
    pub fn store_half(self, at: u8, offset: i16, from: u8) -> Self {
        self.add(0x6b, at, from, offset, 0)
    }
    /// Stores a 32-bit number.
    pub fn put(self, at: u8, offset: i16, number: i32) -> Self {
        self.add(0x62, at, 0, offset, number)
    }
    /// Loads a byte of the packet in register 6 into register 0; shorter packets pass.
    pub fn byte(self, place: i32) -> Self {
        self.add(0x30, 0, 0, 0, place)
    }
    /// Loads two bytes of the packet in register 6 into register 0; shorter packets pass.
    pub fn half(self, place: i32) -> Self {
        self.add(0x28, 0, 0, 0, place)
    }
    /// Calls a helper with registers 1 to 5; the result is in register 0.
    pub fn call(self, helper: i32) -> Self {
        self.add(0x85, 0, 0, 0, helper)
    }
    /// Returns register 0.
    pub fn exit(self) -> Self {
        self.add(0x95, 0, 0, 0, 0)
    }
    /// Jumps forward to a label.
    pub fn jump(mut self, when: If, register: u8, number: i32, label: &'static str) -> Self {
        self.jumps.push((self.code.len(), label));
        self.add(when as u8, register, 0, 0, number)
    }
    /// Places a label.
    pub fn label(mut self, name: &'static str) -> Self {
        self.labels.push((name, self.code.len()));
        self
    }

    /// Loads the program into the kernel, which verifies it.
    ///
    /// # Panics
    /// Panics if a label is missing: a bug.
    pub fn load_program(mut self) -> io::Result<BpfProgram> {
        for (place, label) in &self.jumps {
            let target = self.labels.iter().find(|(name, _)| name == label);
            let target = target.expect("every label is written").1;
            self.code[*place].offset = (target - place - 1) as i16;
        }
        let license = c"none of its helpers asks for one";
        let mut words = [0u64; 16];
        words[0] = u64::from(SCHED_CLS) | (self.code.len() as u64) << 32;
        words[1] = self.code.as_ptr() as u64;
        words[2] = license.as_ptr() as u64;
        ask(PROG_LOAD, &words).map(BpfProgram)
    }
}

/// Program loaded into the kernel.
pub struct BpfProgram(OwnedFd);

/// Direction through an interface.
#[derive(Clone, Copy)]
pub enum Side {
    /// Ingress.
    In,
    /// Egress.
    Out,
}

impl BpfProgram {
    /// Attaches the program to an interface until the link is closed.
    pub fn attach(&self, interface: libc::c_int, side: Side) -> io::Result<OwnedFd> {
        let side = if matches!(side, Side::In) { TCX_INGRESS } else { TCX_EGRESS };
        let mut words = [0u64; 16];
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        words[0] = pair(self.0.as_raw_fd() as u32, interface as u32);
        words[1] = pair(side, 0);
        ask(LINK_CREATE, &words)
    }
}

/// Executes the system call; `words` are its attributes in little-endian layout.
fn ask(call: libc::c_long, words: &[u64; 16]) -> io::Result<OwnedFd> {
    if cfg!(target_endian = "big") {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let size = size_of_val(words);
    // SAFETY: the attributes are complete, and what they point to outlives the call.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, call, words.as_ptr(), size) };
    check(fd as libc::c_int).map(owned)
}
