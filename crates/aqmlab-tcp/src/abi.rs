//! C ABI of congestion controls in shared libraries; [`aqmlab_core::abi`] describes its rules, and
//! `aqmlab_aqm::abi` the two halves.

use std::ffi::c_void;
use std::ptr::NonNull;

use aqmlab_core::abi::{Header, Parameters, Plain, Text, created, guarded, observed, params};
use aqmlab_core::packet::checksum;
use aqmlab_core::{Component, Rate, Span, Time, in_c};

use crate::congestion::{
    AckSample, Congestion, CongestionEvent, ControlParams, ExternalControl, LostSegment,
    RateSample, SentSample, Setup,
};

/// State of a control after a call.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Answers {
    /// Window in bytes.
    pub window: u64,
    /// Slow start threshold in bytes.
    pub ssthresh: u64,
    /// Pacing rate in bit/s; 0 does not pace.
    pub pacing_rate: u64,
    /// Not 0 if it needs rate samples.
    pub needs_rate_samples: u32,
    /// Not 0 if the window holds in recoveries.
    pub recovers_by_itself: u32,
}

in_c! {
    CAckSample: AckSample {
        now: Time, acked: u64, sacked: u64, delivered: u64, recounted: u64, lost: u64,
        ce_bytes: u64, ce_packets: u64, ece: bool, prior_in_flight: u64, in_flight: u64,
        rtt: Option<Span>, one_way_delay: Option<Span>, smoothed_rtt: Option<Span>,
        min_rtt: Option<Span>, rate: Option<RateSample>, round_start: bool, total_delivered: u64,
        total_lost: u64, in_recovery: bool, in_loss: bool, window_limited: bool,
    }
    CRateSample: RateSample {
        delivered: u64, interval: Span, app_limited: bool, prior_delivered: u64, lost: u64,
        tx_in_flight: u64, rtt: Span,
    }
    CCongestionEvent: CongestionEvent {
        now: Time, kind: Congestion, flight_size: u64, in_flight: u64,
    }
    CSentSample: SentSample {
        now: Time, bytes: u64, prior_in_flight: u64, app_limited: bool, retransmission: bool,
    }
    CLostSegment: LostSegment { bytes: u64, tx_in_flight: u64, lost: u64, app_limited: bool }
    CSetup: Setup {
        mss: u64, initial_window: u64, initial_ssthresh: u64, seed: u64, header: u64,
        is_paced: bool, has_sack: bool,
    }
}

impl Plain for Congestion {
    type C = u32;
    fn to_c(self) -> u32 {
        match self {
            Congestion::Loss => 0,
            Congestion::Ecn => 1,
            Congestion::Timeout { first } => 2 + u32::from(first),
        }
    }
    fn from_c(c: u32) -> Self {
        match c {
            0 => Congestion::Loss,
            1 => Congestion::Ecn,
            _ => Congestion::Timeout { first: c == 3 },
        }
    }
}

/// The connection is open.
#[derive(Clone, Copy, Debug)]
pub struct Connected {
    /// Present time.
    pub now: Time,
    /// Round-trip time of the SYN, if it was sent once.
    pub rtt: Option<Span>,
}
in_c! { CConnected: Connected { now: Time, rtt: Option<Span> } }

/// Checksum of the structs that pass the boundary.
pub const LAYOUT: u64 = checksum(&[
    size_of::<CAckSample>(),
    size_of::<CCongestionEvent>(),
    size_of::<CSentSample>(),
    size_of::<CLostSegment>(),
    size_of::<CSetup>(),
    size_of::<CConnected>(),
    size_of::<Answers>(),
    size_of::<Text>(),
]);

macro_rules! tables {
    ($($(#[$doc:meta])* $Name:ident [$($unsafe:ident)?] $Shared:ty, $Changing:ty, $Owned:ty;)+) => { $(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy)]
        #[allow(missing_docs)] // The functions have the names of the methods that they call.
        pub struct $Name {
            pub header: Header,
            pub params: Parameters,
            pub cycle: extern "C" fn(&Text, f64, f64, u64, &mut f64) -> u32,
            pub build: extern "C" fn(&Text, &CSetup, &mut Answers) -> Option<$Owned>,
            pub copy: $($unsafe)? extern "C" fn($Shared) -> Option<$Owned>,
            pub free: $($unsafe)? extern "C" fn($Owned),
            pub on_ack: $($unsafe)? extern "C" fn($Changing, &CAckSample, &mut Answers) -> u32,
            pub on_congestion:
                $($unsafe)? extern "C" fn($Changing, &CCongestionEvent, &mut Answers) -> u32,
            pub on_undo: $($unsafe)? extern "C" fn($Changing, &u64, &mut Answers) -> u32,
            pub on_connected: $($unsafe)? extern "C" fn($Changing, &CConnected, &mut Answers) -> u32,
            pub on_idle: $($unsafe)? extern "C" fn($Changing, &u64, &mut Answers) -> u32,
            pub set_ssthresh: $($unsafe)? extern "C" fn($Changing, &u64, &mut Answers) -> u32,
            pub on_sent: $($unsafe)? extern "C" fn($Changing, &CSentSample, &mut Answers) -> u32,
            pub on_lost: $($unsafe)? extern "C" fn($Changing, &CLostSegment, &mut Answers) -> u32,
            pub on_recovery_exit: $($unsafe)? extern "C" fn($Changing, &u64, &mut Answers) -> u32,
            pub observe: $($unsafe)? extern "C" fn($Shared, usize, &mut Text, &mut f64) -> u32,
        }
    )+ };
}

tables! {
    /// Functions of a control, as its library exports them.
    Table [] &Exported, &mut Exported, Box<Exported>;
    /// The same functions as the loader calls them. A pointer must be one that this table's `build`
    /// or `copy` returned and `free` has not got.
    Loaded [unsafe] NonNull<c_void>, NonNull<c_void>, NonNull<c_void>;
}

/// Control of a library.
pub struct Exported(Box<dyn ExternalControl>);

impl Exported {
    fn answers(&self) -> Answers {
        Answers {
            window: self.0.window(),
            ssthresh: self.0.ssthresh(),
            pacing_rate: self.0.pacing_rate().map_or(0, Rate::as_bps),
            needs_rate_samples: self.0.needs_rate_samples().into(),
            recovers_by_itself: self.0.recovers_by_itself().into(),
        }
    }
}

macro_rules! calls {
    ($($method:ident($control:ident, $told:ident: $Told:ty) $call:expr;)+) => { $(
        extern "C" fn $method(
            exported: &mut Exported,
            told: &<$Told as Plain>::C,
            answers: &mut Answers,
        ) -> u32 {
            guarded(|| {
                let ($control, $told) = (&mut exported.0, <$Told>::from_c(*told));
                $call;
                *answers = exported.answers();
                true
            })
        }
    )+ };
}

calls! {
    on_ack(control, ack: AckSample) control.on_ack(&ack);
    on_congestion(control, event: CongestionEvent) control.on_congestion(&event);
    on_undo(control, _none: u64) control.on_undo();
    on_connected(control, told: Connected) control.on_connected(told.now, told.rtt);
    on_idle(control, restart_window: u64) control.on_idle(restart_window);
    set_ssthresh(control, ssthresh: u64) control.set_ssthresh(ssthresh);
    on_sent(control, sent: SentSample) control.on_sent(&sent);
    on_lost(control, lost: LostSegment) control.on_lost(&lost);
    on_recovery_exit(control, in_flight: u64) control.on_recovery_exit(in_flight);
}

impl Table {
    /// Functions of the control with the parameters `P`, exported under this name.
    pub const fn of<P: ControlParams + Component>(name: &str) -> Self {
        Table {
            header: Header::of::<Self>(name, LAYOUT),
            params: Parameters::of::<P>(),
            cycle: cycle::<P>,
            build: build::<P>,
            copy,
            free,
            on_ack,
            on_congestion,
            on_undo,
            on_connected,
            on_idle,
            set_ssthresh,
            on_sent,
            on_lost,
            on_recovery_exit,
            observe,
        }
    }
}

const CHECKED: &str = "the loader passes values that `set` returned";

extern "C" fn cycle<P: ControlParams + Component>(
    all: &Text,
    window: f64,
    rtt: f64,
    acknowledged: u64,
    seconds: &mut f64,
) -> u32 {
    guarded(|| {
        let cycle = params::<P>(all).expect(CHECKED).cycle(window, rtt, acknowledged);
        *seconds = cycle.unwrap_or_default();
        cycle.is_some()
    })
}

extern "C" fn build<P: ControlParams + Component>(
    all: &Text,
    setup: &CSetup,
    answers: &mut Answers,
) -> Option<Box<Exported>> {
    created(|| {
        let setup = Setup::from_c(*setup);
        let control = Box::new(Exported(params::<P>(all).expect(CHECKED).build(&setup)));
        *answers = control.answers();
        Some(control)
    })
}

extern "C" fn copy(control: &Exported) -> Option<Box<Exported>> {
    created(|| control.0.boxed_clone().map(|control| Box::new(Exported(control))))
}

extern "C" fn free(control: Box<Exported>) {
    guarded(|| {
        drop(control);
        true
    });
}

extern "C" fn observe(control: &Exported, index: usize, name: &mut Text, value: &mut f64) -> u32 {
    observed(index, name, value, |see| control.0.observe(see))
}

/// Exports congestion controls from a shared library (`crate-type = ["cdylib"]`), each under a name:
/// `aqmlab_tcp::export!(MyControl: MyControlParams);` is `libmine.so:MyControl` in scenarios.
///
/// The macro has the only unsafe attribute of a library: the name of the exported function.
#[macro_export]
macro_rules! export {
    ($($Name:ident: $Params:ty),+ $(,)?) => {
        /// Returns the control of this index.
        #[unsafe(no_mangle)]
        pub extern "C" fn aqmlab_controls(index: usize) -> Option<&'static $crate::abi::Table> {
            const TABLES: &[$crate::abi::Table] =
                &[$( $crate::abi::Table::of::<$Params>(stringify!($Name)) ),+];
            $crate::__keep_panics();
            TABLES.get(index)
        }
    };
}
