//! Arguments passed to congestion controls written in Python. `_core.pyi` documents the members;
//! times are nanoseconds.

use aqmlab_core::{Span, Stream, Time};
use aqmlab_tcp::congestion::{
    AckSample, Congestion, CongestionEvent, LostSegment, RateSample, SentSample, Setup,
};
use pyo3::prelude::*;

/// Setup of a congestion control.
#[pyclass(name = "Setup", module = "aqmlab._core")]
#[derive(Clone)]
pub struct PySetup {
    #[pyo3(get)]
    mss: u64,
    #[pyo3(get)]
    header: u64,
    #[pyo3(get)]
    initial_window: u64,
    #[pyo3(get)]
    initial_ssthresh: u64,
    random: Stream,
}

impl PySetup {
    pub fn of(setup: &Setup) -> Self {
        PySetup {
            mss: setup.mss,
            header: setup.header,
            initial_window: setup.initial_window,
            initial_ssthresh: setup.initial_ssthresh,
            random: Stream::from_state(setup.seed),
        }
    }
}

#[pymethods]
impl PySetup {
    fn random(&mut self) -> f64 {
        self.random.uniform()
    }
    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.clone()
    }
}

/// Declares classes that copy the fields of samples of the engine, converted where a function
/// follows: times and spans are whole nanoseconds. A last field may be made of the sample.
macro_rules! copied {
    ($(
        $(#[$doc:meta])*
        $Class:ident($name:literal) of $Sample:ident {
            $($field:ident: $Type:ty $(= $convert:expr)?,)+
            $(; $made:ident: $Made:ty = |$py:ident, $sample:ident| $make:expr)?
        }
    )+) => { $(
        $(#[$doc])*
        #[pyclass(name = $name, module = "aqmlab._core", frozen, get_all)]
        pub struct $Class {
            $( $field: $Type, )+
            $( $made: $Made, )?
        }

        impl $Class {
            pub fn of(_py: Python<'_>, sample: &$Sample) -> PyResult<Self> {
                $( let ($py, $sample) = (_py, sample); )?
                Ok($Class {
                    $( $field: copied!(@ sample.$field $(, $convert)?), )+
                    $( $made: $make, )?
                })
            }
        }
    )+ };
    (@ $value:expr) => { $value };
    (@ $value:expr, $convert:expr) => { $convert($value) };
}

fn nanos(span: Option<Span>) -> Option<u64> {
    span.map(Span::as_nanos)
}

copied! {
    /// Acknowledgement.
    PyAckSample("AckSample") of AckSample {
        now: u64 = Time::as_nanos,
        acked: u64,
        sacked: u64,
        delivered: u64,
        lost: u64,
        ce_bytes: u64,
        ce_packets: u64,
        ece: bool,
        prior_in_flight: u64,
        in_flight: u64,
        rtt: Option<u64> = nanos,
        one_way_delay: Option<u64> = nanos,
        smoothed_rtt: Option<u64> = nanos,
        min_rtt: Option<u64> = nanos,
        round_start: bool,
        total_delivered: u64,
        total_lost: u64,
        in_recovery: bool,
        in_loss: bool,
        window_limited: bool,
        ; rate: Option<Py<PyRateSample>> = |py, sample| {
            sample.rate.map(|rate| Py::new(py, PyRateSample::of(py, &rate)?)).transpose()?
        }
    }

    /// Delivery rate sample.
    PyRateSample("RateSample") of RateSample {
        delivered: u64,
        interval: u64 = Span::as_nanos,
        app_limited: bool,
        prior_delivered: u64,
        lost: u64,
        tx_in_flight: u64,
        rtt: u64 = Span::as_nanos,
    }

    /// Segment being sent.
    PySentSample("SentSample") of SentSample {
        now: u64 = Time::as_nanos,
        bytes: u64,
        prior_in_flight: u64,
        app_limited: bool,
        retransmission: bool,
    }

    /// Segment considered lost.
    PyLostSegment("LostSegment") of LostSegment {
        bytes: u64,
        tx_in_flight: u64,
        lost: u64,
        app_limited: bool,
    }
}

#[pymethods]
impl PyAckSample {
    fn __repr__(&self) -> String {
        let PyAckSample { now, acked, sacked, lost, .. } = self;
        format!("<AckSample of {acked} bytes, {sacked} by SACK, {lost} lost, at {now} ns>")
    }
}

/// Congestion event.
#[pyclass(name = "CongestionEvent", module = "aqmlab._core", frozen, get_all)]
pub struct PyCongestionEvent {
    now: u64,
    kind: &'static str,
    first: bool,
    flight_size: u64,
    in_flight: u64,
}

impl PyCongestionEvent {
    pub fn of(event: &CongestionEvent) -> Self {
        let kind = match event.kind {
            Congestion::Loss => "loss",
            Congestion::Timeout { .. } => "timeout",
            Congestion::Ecn => "ecn",
        };
        PyCongestionEvent {
            now: event.now.as_nanos(),
            kind,
            first: event.kind != Congestion::Timeout { first: false },
            flight_size: event.flight_size,
            in_flight: event.in_flight,
        }
    }
}

#[pymethods]
impl PyCongestionEvent {
    fn __repr__(&self) -> String {
        let PyCongestionEvent { now, kind, flight_size, .. } = self;
        format!("<CongestionEvent {kind}, {flight_size} bytes in flight, at {now} ns>")
    }
}
