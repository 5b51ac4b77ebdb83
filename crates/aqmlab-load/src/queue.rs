//! Queue disciplines of libraries.

use std::ffi::c_void;
use std::ptr::from_mut;
use std::sync::Arc;

use aqmlab_aqm::abi::{Answers, Call, Loaded};
use aqmlab_aqm::{
    Backlog, CloneDiscipline, Context, Discipline, Headers, LinkEnv, Note, QueueDiscipline, Reason,
};
use aqmlab_core::abi::{CTcpHeader, NEVER, NO, Plain, Text, YES};
use aqmlab_core::{Ecn, Error, Packet, Result, Span, Time};

use crate::library::table;
use crate::{CODE, File, Handle, Type, kept};

/// Table of a discipline, with the names of the parameters that a running queue keeps.
#[derive(Clone, Copy)]
pub struct Table {
    pub functions: Loaded,
    pub fixed: &'static [&'static str],
}

pub type Config = crate::Config<Table>;

impl Config {
    pub fn load(file: File<'_>) -> Result<Self> {
        let functions: Loaded = table(file)?;
        let mut text = Text::default();
        let names = match (functions.fixed)(&mut text) {
            YES => text.fields().into_iter().filter(|name| !name.is_empty()).map(kept).collect(),
            _ => Vec::new(),
        };
        let fixed = names.leak();
        Self::new(file, true, functions.params, Table { functions, fixed })
    }
}

impl Discipline for Config {
    fn gives_signals(&self) -> bool {
        (self.table.functions.gives_signals)(&self.values) != NO
    }
    fn slowest(&self, env: &LinkEnv) -> Option<(&'static str, Span)> {
        let (mut name, mut nanos) = (Text::default(), 0);
        let answer = (self.table.functions.slowest)(&self.values, env, &mut name, &mut nanos);
        (answer == YES).then(|| (kept(name.as_str()), Span::from_nanos(nanos)))
    }
    fn fixed(&self) -> &'static [&'static str] {
        self.table.fixed
    }
    fn check_change(&self, key: &str) -> Result<()> {
        let problem = match key {
            CODE => "the code of the library has changed",
            _ if self.table.fixed.contains(&key) => "a running queue keeps its value of this",
            _ => return Ok(()),
        };
        Err(Error::new(problem).hint("`replace` begins a new queue with it"))
    }
    fn build(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline> {
        let table = self.table.functions;
        let mut answers =
            Answers { backlog: Backlog::default(), wakeup: NEVER, has_fixed_timer: 0 };
        let built = (table.build)(&self.values, env, &mut answers);
        let pointer = built.unwrap_or_else(|| self.type_.fail("build", Time::ZERO));
        let handle = Handle { pointer, free: table.free };
        let type_ = Arc::clone(&self.type_);
        Box::new(Queue { handle, table, type_, answers, now: Time::ZERO })
    }
    fn change(&self, queue: &mut dyn QueueDiscipline, env: &LinkEnv, cx: &mut Context<'_>) {
        queue.machine::<Queue>().call(cx, "change", |queue, call| {
            // SAFETY: the pointer is the queue's (rule 3).
            unsafe { (queue.table.change)(queue.handle.pointer, &self.values, env, call) }
        });
    }
}

/// Queue of a library.
struct Queue {
    handle: Handle,
    table: Loaded,
    type_: Arc<Type>,
    answers: Answers,
    now: Time,
}

/// Data of the functions that a library calls.
struct Host<'a> {
    headers: &'a dyn Headers,
    dropped: Vec<(Packet, u32)>,
    marked: Vec<(u64, u32)>,
}

/// Returns the data to which a library was given a pointer.
///
/// # Safety
/// `host` must be the pointer of a [`Call`] whose function is running, and the only one in use.
unsafe fn host<'a>(host: *mut c_void) -> &'a mut Host<'a> {
    // SAFETY: `Queue::call` made it from a `&mut Host` that it does not use until the call ends.
    unsafe { &mut *host.cast() }
}

extern "C" fn dropped(data: *mut c_void, packet: Packet, reason: u32) {
    // SAFETY: the library passes back the pointer of its call (rule 1).
    unsafe { host(data) }.dropped.push((packet, reason));
}

extern "C" fn marked(data: *mut c_void, key: u64, reason: u32) {
    // SAFETY: as above.
    unsafe { host(data) }.marked.push((key, reason));
}

extern "C" fn tcp(data: *mut c_void, packet: &Packet, out: &mut CTcpHeader) -> u32 {
    // SAFETY: as above.
    let header = unsafe { host(data) }.headers.tcp(packet);
    *out = header.unwrap_or_default().to_c();
    header.is_some().into()
}

extern "C" fn listed(data: *mut c_void, packet: &Packet) {
    // SAFETY: `list` passes a pointer to such a reference, which it does not use until the call ends.
    let see = unsafe { &mut *data.cast::<&mut dyn FnMut(&Packet)>() };
    see(packet);
}

impl Queue {
    #[inline]
    fn call(
        &mut self,
        cx: &mut Context<'_>,
        method: &str,
        what: impl FnOnce(&mut Self, &mut Call<'_>) -> u32,
    ) -> bool {
        let mut data = Host { headers: cx.headers, dropped: Vec::new(), marked: Vec::new() };
        let mut call = Call {
            now: cx.now,
            random: cx.random,
            host: from_mut(&mut data).cast(),
            dropped,
            marked,
            tcp,
            answers: self.answers,
        };
        let answer = what(self, &mut call);
        (self.answers, self.now) = (call.answers, cx.now);
        for (packet, reason) in data.dropped {
            cx.drop(packet, Reason::of_number(reason));
        }
        for (key, reason) in data.marked {
            // The library has marked the packet itself; this counts and records it.
            cx.mark(&mut Packet::new(0, Ecn::Ect0).with_key(key), Reason::of_number(reason));
        }
        self.type_.answer(answer, method, self.now)
    }
}

impl CloneDiscipline for Queue {
    fn clone_box(&self) -> Box<dyn QueueDiscipline> {
        // SAFETY: the pointer is the queue's (rule 3).
        let copy = unsafe { (self.table.copy)(self.handle.pointer) };
        let pointer = copy.unwrap_or_else(|| self.type_.fail("clone", self.now));
        let handle = Handle { pointer, free: self.table.free };
        Box::new(Queue { handle, type_: Arc::clone(&self.type_), ..*self })
    }
}

impl QueueDiscipline for Queue {
    fn enqueue(&mut self, packet: Packet, cx: &mut Context<'_>) {
        self.call(cx, "enqueue", |queue, call| {
            // SAFETY: the pointer is the queue's (rule 3).
            unsafe { (queue.table.enqueue)(queue.handle.pointer, packet, call) }
        });
    }
    fn dequeue(&mut self, cx: &mut Context<'_>) -> Option<Packet> {
        let mut packet = Packet::new(0, Ecn::NotEct);
        let has = self.call(cx, "dequeue", |queue, call| {
            // SAFETY: the pointer is the queue's (rule 3).
            unsafe { (queue.table.dequeue)(queue.handle.pointer, &mut packet, call) }
        });
        has.then_some(packet)
    }
    fn next_wakeup(&self) -> Option<Time> {
        (self.answers.wakeup != NEVER).then(|| Time::from_nanos(self.answers.wakeup))
    }
    fn has_fixed_timer(&self) -> bool {
        self.answers.has_fixed_timer != 0
    }
    fn on_wakeup(&mut self, cx: &mut Context<'_>) {
        self.call(cx, "on_wakeup", |queue, call| {
            // SAFETY: the pointer is the queue's (rule 3).
            unsafe { (queue.table.on_wakeup)(queue.handle.pointer, call) }
        });
    }
    fn backlog(&self) -> Backlog {
        self.answers.backlog
    }
    fn list(&self, mut see: &mut dyn FnMut(&Packet)) -> bool {
        let data = from_mut(&mut see).cast();
        // SAFETY: the pointer is the queue's (rule 3), and `listed` gets the pointer that it expects.
        let answer = unsafe { (self.table.list)(self.handle.pointer, data, listed) };
        self.type_.answer(answer, "list", self.now)
    }
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        crate::observed(&self.type_, self.now, see, |index, name, value| {
            // SAFETY: the pointer is the queue's (rule 3).
            unsafe { (self.table.observe)(self.handle.pointer, index, name, value) }
        });
    }
    fn refuse(&self, problem: &str) -> ! {
        self.type_.end(format!("{problem} at {} s", self.now.as_secs_f64()))
    }
    fn notes(&self) -> Vec<Note> {
        let (mut notes, mut text) = (Vec::new(), Text::default());
        loop {
            // SAFETY: the pointer is the queue's (rule 3).
            let answer = unsafe { (self.table.notes)(self.handle.pointer, notes.len(), &mut text) };
            if !self.type_.answer(answer, "notes", self.now) {
                return notes;
            }
            let fields = text.fields();
            let (id, text) = (kept(fields[0]), fields[1..].join(""));
            notes.push(Note { id, text });
        }
    }
}
