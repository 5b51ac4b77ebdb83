//! C ABI of queue disciplines in shared libraries; [`aqmlab_core::abi`] describes its rules.
//!
//! The library's half is here and safe: functions that take references, for any parameters that
//! implement [`Discipline`]; [`export!`](crate::export!) names them. The other half, `aqmlab-load`,
//! reads the same table as [`Loaded`], with pointers instead of references to the queue, which only
//! the library can dereference.

use core::ffi::c_void;
use core::ptr::NonNull;

use aqmlab_core::abi::{
    CTcpHeader, Header, NEVER, NO, Parameters, Plain, Text, created, guarded, params,
};
use aqmlab_core::packet::checksum;
use aqmlab_core::{Component, Packet, Span, Stream, TcpHeader, Time};

use crate::discipline::{
    Backlog, Context, Discipline, Headers, LinkEnv, QueueDiscipline, Reason, Sink,
};

/// State of a queue after a call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Answers {
    /// Backlog.
    pub backlog: Backlog,
    /// Time of the next `on_wakeup` in nanoseconds, or [`NEVER`].
    pub wakeup: u64,
    /// Not 0 if only `on_wakeup` changes that time.
    pub has_fixed_timer: u32,
}

/// Context of a call.
#[repr(C)]
#[derive(Debug)]
pub struct Call<'a> {
    /// Present time.
    pub now: Time,
    /// Random stream of the discipline.
    pub random: &'a mut Stream,
    /// Data of the loader, which its functions get.
    pub host: *mut c_void,
    /// Takes a dropped packet and the number of its [`Reason`].
    pub dropped: extern "C" fn(*mut c_void, Packet, u32),
    /// Takes the key of a marked packet and the number of its [`Reason`].
    pub marked: extern "C" fn(*mut c_void, u64, u32),
    /// Reads the TCP header of a packet.
    pub tcp: extern "C" fn(*mut c_void, &Packet, &mut CTcpHeader) -> u32,
    /// State after the call.
    pub answers: Answers,
}

/// Checksum of the structs that pass the boundary.
pub const LAYOUT: u64 = Packet::LAYOUT
    ^ checksum(&[
        size_of::<Call>(),
        size_of::<Stream>(),
        size_of::<LinkEnv>(),
        size_of::<CTcpHeader>(),
        size_of::<Text>(),
    ]);

macro_rules! tables {
    ($($(#[$doc:meta])* $Name:ident [$($unsafe:ident)?] $Shared:ty, $Changing:ty, $Owned:ty;)+) => { $(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy)]
        pub struct $Name {
            /// Version, size, layout and name.
            pub header: Header,
            /// Functions for its parameters.
            pub params: Parameters,
            /// True if it gives signals ([`Discipline::gives_signals`]).
            pub gives_signals: extern "C" fn(&Text) -> u32,
            /// Name and nanoseconds of the slowest adaptation ([`Discipline::slowest`]).
            pub slowest: extern "C" fn(&Text, &LinkEnv, &mut Text, &mut u64) -> u32,
            /// Names of the parameters that a running queue keeps ([`Discipline::fixed`]).
            pub fixed: extern "C" fn(&mut Text) -> u32,
            /// Creates a queue with these parameters.
            pub build: extern "C" fn(&Text, &LinkEnv, &mut Answers) -> Option<$Owned>,
            /// Copies a queue with its packets.
            pub copy: $($unsafe)? extern "C" fn($Shared) -> Option<$Owned>,
            /// Frees a queue.
            pub free: $($unsafe)? extern "C" fn($Owned),
            /// Changes parameters of a queue ([`Discipline::change`]).
            pub change: $($unsafe)? extern "C" fn($Changing, &Text, &LinkEnv, &mut Call<'_>) -> u32,
            /// Enqueues a packet.
            pub enqueue: $($unsafe)? extern "C" fn($Changing, Packet, &mut Call<'_>) -> u32,
            /// Dequeues a packet into the second argument, or answers no.
            pub dequeue: $($unsafe)? extern "C" fn($Changing, &mut Packet, &mut Call<'_>) -> u32,
            /// Handles the timer.
            pub on_wakeup: $($unsafe)? extern "C" fn($Changing, &mut Call<'_>) -> u32,
            /// Passes all packets with the second argument to the function, or answers no.
            pub list: $($unsafe)? extern "C" fn(
                $Shared, *mut c_void, extern "C" fn(*mut c_void, &Packet)) -> u32,
            /// Name and value of the state variable of this index.
            pub observe: $($unsafe)? extern "C" fn($Shared, usize, &mut Text, &mut f64) -> u32,
            /// Identifier and text of the note of this index.
            pub notes: $($unsafe)? extern "C" fn($Shared, usize, &mut Text) -> u32,
        }
    )+ };
}

tables! {
    /// Functions of a discipline, as its library exports them.
    Table [] &Exported, &mut Exported, Box<Exported>;
    /// The same functions as the loader calls them. A pointer must be one that this table's `build`
    /// or `copy` returned and `free` has not got.
    Loaded [unsafe] NonNull<c_void>, NonNull<c_void>, NonNull<c_void>;
}

/// Queue of a library.
pub struct Exported {
    queue: Box<dyn QueueDiscipline>,
    sink: Sink,
}

impl Exported {
    fn new(queue: Box<dyn QueueDiscipline>) -> Box<Self> {
        Box::new(Exported { queue, sink: Sink { marks: Some(Vec::new()), ..Sink::default() } })
    }

    fn answers(&self) -> Answers {
        let wakeup = self.queue.next_wakeup().map_or(NEVER, Time::as_nanos);
        let has_fixed_timer = self.queue.has_fixed_timer().into();
        Answers { backlog: self.queue.backlog(), wakeup, has_fixed_timer }
    }

    #[inline]
    fn call(
        &mut self,
        call: &mut Call<'_>,
        what: impl FnOnce(&mut dyn QueueDiscipline, &mut Context<'_>) -> bool,
    ) -> u32 {
        guarded(|| {
            let (host, tcp) = (call.host, call.tcp);
            let headers = Remote { host, tcp };
            let random = &mut *call.random;
            let sink = &mut self.sink;
            let mut cx = Context { now: call.now, random, headers: &headers, held: 0, sink };
            let answer = what(&mut *self.queue, &mut cx);
            for (packet, reason) in self.sink.dropped.drain(..) {
                (call.dropped)(host, packet, reason as u32);
            }
            if self.sink.marks.as_ref().is_some_and(|marks| !marks.is_empty()) {
                self.tell_marks(call);
            }
            call.answers = self.answers();
            answer
        })
    }

    /// Passes marked packets on, in order. Only their numbers are known by reason.
    #[cold]
    fn tell_marks(&mut self, call: &Call<'_>) {
        let mut keys = self.sink.marks.iter_mut().flat_map(|marks| marks.drain(..));
        for (reason, count) in self.sink.marked.iter_mut().enumerate() {
            for key in keys.by_ref().take(core::mem::take(count) as usize) {
                (call.marked)(call.host, key, reason as u32);
            }
        }
    }
}

/// Headers that the loader reads.
struct Remote {
    host: *mut c_void,
    tcp: extern "C" fn(*mut c_void, &Packet, &mut CTcpHeader) -> u32,
}

impl Headers for Remote {
    fn tcp(&self, packet: &Packet) -> Option<TcpHeader> {
        let mut header = CTcpHeader::default();
        ((self.tcp)(self.host, packet, &mut header) != NO).then(|| TcpHeader::from_c(header))
    }
}

impl Table {
    /// Functions of the discipline with the parameters `P`, exported under this name.
    pub const fn of<P: Discipline + Component>(name: &str) -> Self {
        Table {
            header: Header::of::<Self>(name, LAYOUT),
            params: Parameters::of::<P>(),
            gives_signals: gives_signals::<P>,
            slowest: slowest::<P>,
            fixed: fixed::<P>,
            build: build::<P>,
            copy,
            free,
            change: change::<P>,
            enqueue,
            dequeue,
            on_wakeup,
            list,
            observe,
            notes,
        }
    }
}

const CHECKED: &str = "the loader passes values that `set` returned";

extern "C" fn gives_signals<P: Discipline + Component>(all: &Text) -> u32 {
    guarded(|| params::<P>(all).expect(CHECKED).gives_signals())
}

extern "C" fn slowest<P: Discipline + Component>(
    all: &Text,
    env: &LinkEnv,
    name: &mut Text,
    nanos: &mut u64,
) -> u32 {
    guarded(|| {
        let slowest = params::<P>(all).expect(CHECKED).slowest(env);
        let (what, span) = slowest.unwrap_or(("", Span::ZERO));
        (*name, *nanos) = (what.into(), span.as_nanos());
        slowest.is_some()
    })
}

extern "C" fn fixed<P: Discipline + Component>(out: &mut Text) -> u32 {
    guarded(|| {
        *out = Text::of_fields(P::default().fixed().iter().copied());
        true
    })
}

extern "C" fn build<P: Discipline + Component>(
    all: &Text,
    env: &LinkEnv,
    answers: &mut Answers,
) -> Option<Box<Exported>> {
    created(|| {
        let queue = Exported::new(params::<P>(all).expect(CHECKED).build(env));
        *answers = queue.answers();
        Some(queue)
    })
}

extern "C" fn copy(queue: &Exported) -> Option<Box<Exported>> {
    created(|| Some(Exported::new(queue.queue.clone())))
}

extern "C" fn free(queue: Box<Exported>) {
    guarded(|| {
        drop(queue);
        true
    });
}

extern "C" fn change<P: Discipline + Component>(
    queue: &mut Exported,
    all: &Text,
    env: &LinkEnv,
    call: &mut Call<'_>,
) -> u32 {
    queue.call(call, |queue, cx| {
        params::<P>(all).expect(CHECKED).change(queue, env, cx);
        true
    })
}

extern "C" fn enqueue(queue: &mut Exported, packet: Packet, call: &mut Call<'_>) -> u32 {
    queue.call(call, |queue, cx| {
        queue.enqueue(packet, cx);
        true
    })
}

extern "C" fn dequeue(queue: &mut Exported, out: &mut Packet, call: &mut Call<'_>) -> u32 {
    queue.call(call, |queue, cx| queue.dequeue(cx).map(|packet| *out = packet).is_some())
}

extern "C" fn on_wakeup(queue: &mut Exported, call: &mut Call<'_>) -> u32 {
    queue.call(call, |queue, cx| {
        queue.on_wakeup(cx);
        true
    })
}

extern "C" fn list(
    queue: &Exported,
    host: *mut c_void,
    see: extern "C" fn(*mut c_void, &Packet),
) -> u32 {
    guarded(|| queue.queue.list(&mut |packet| see(host, packet)))
}

extern "C" fn observe(queue: &Exported, index: usize, name: &mut Text, value: &mut f64) -> u32 {
    aqmlab_core::abi::observed(index, name, value, |see| queue.queue.observe(see))
}

extern "C" fn notes(queue: &Exported, index: usize, out: &mut Text) -> u32 {
    guarded(|| {
        let notes = queue.queue.notes();
        let Some(note) = notes.get(index) else { return false };
        *out = Text::of_fields([note.id, &*note.text]);
        true
    })
}

impl Reason {
    /// Returns the reason of this number; a number of a newer version is [`Reason::User`].
    pub fn of_number(number: u32) -> Self {
        *Self::ALL.get(number as usize).unwrap_or(&Reason::User)
    }
}

/// Exports queue disciplines from a shared library (`crate-type = ["cdylib"]`), each under a name:
/// `aqmlab_aqm::export!(MyQueue: MyQueueParams);` is `libmine.so:MyQueue` in scenarios.
///
/// The macro has the only unsafe attribute of a library: the name of the exported function.
#[macro_export]
macro_rules! export {
    ($($Name:ident: $Params:ty),+ $(,)?) => {
        /// Returns the discipline of this index.
        #[unsafe(no_mangle)]
        pub extern "C" fn aqmlab_queues(index: usize) -> Option<&'static $crate::abi::Table> {
            const TABLES: &[$crate::abi::Table] =
                &[$( $crate::abi::Table::of::<$Params>(stringify!($Name)) ),+];
            $crate::__keep_panics();
            TABLES.get(index)
        }
    };
}
