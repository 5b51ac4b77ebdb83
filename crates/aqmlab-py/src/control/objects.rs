//! Arguments passed to congestion controls written in Python. `_core.pyi` documents the members;
//! times are nanoseconds.

use aqmlab_core::{Span, Stream};
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

/// Acknowledgement.
#[pyclass(name = "AckSample", module = "aqmlab._core", frozen, get_all)]
pub struct PyAckSample {
    now: u64,
    acked: u64,
    sacked: u64,
    delivered: u64,
    lost: u64,
    ce_bytes: u64,
    ce_packets: u64,
    ece: bool,
    prior_in_flight: u64,
    in_flight: u64,
    rtt: Option<u64>,
    one_way_delay: Option<u64>,
    smoothed_rtt: Option<u64>,
    min_rtt: Option<u64>,
    rate: Option<Py<PyRateSample>>,
    round_start: bool,
    total_delivered: u64,
    total_lost: u64,
    in_recovery: bool,
    in_loss: bool,
    window_limited: bool,
}

impl PyAckSample {
    pub fn of(py: Python<'_>, sample: &AckSample) -> PyResult<Self> {
        Ok(PyAckSample {
            now: sample.now.as_nanos(),
            acked: sample.acked,
            sacked: sample.sacked,
            delivered: sample.delivered,
            lost: sample.lost,
            ce_bytes: sample.ce_bytes,
            ce_packets: sample.ce_packets,
            ece: sample.ece,
            prior_in_flight: sample.prior_in_flight,
            in_flight: sample.in_flight,
            rtt: sample.rtt.map(Span::as_nanos),
            one_way_delay: sample.one_way_delay.map(Span::as_nanos),
            smoothed_rtt: sample.smoothed_rtt.map(Span::as_nanos),
            min_rtt: sample.min_rtt.map(Span::as_nanos),
            rate: sample.rate.map(|rate| Py::new(py, PyRateSample::of(&rate))).transpose()?,
            round_start: sample.round_start,
            total_delivered: sample.total_delivered,
            total_lost: sample.total_lost,
            in_recovery: sample.in_recovery,
            in_loss: sample.in_loss,
            window_limited: sample.window_limited,
        })
    }
}

#[pymethods]
impl PyAckSample {
    fn __repr__(&self) -> String {
        let PyAckSample { now, acked, sacked, lost, .. } = self;
        format!("<AckSample of {acked} bytes, {sacked} by SACK, {lost} lost, at {now} ns>")
    }
}

/// Delivery rate sample.
#[pyclass(name = "RateSample", module = "aqmlab._core", frozen, get_all)]
pub struct PyRateSample {
    delivered: u64,
    interval: u64,
    app_limited: bool,
    prior_delivered: u64,
    lost: u64,
    tx_in_flight: u64,
    rtt: u64,
}

impl PyRateSample {
    fn of(sample: &RateSample) -> Self {
        PyRateSample {
            delivered: sample.delivered,
            interval: sample.interval.as_nanos(),
            app_limited: sample.app_limited,
            prior_delivered: sample.prior_delivered,
            lost: sample.lost,
            tx_in_flight: sample.tx_in_flight,
            rtt: sample.rtt.as_nanos(),
        }
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

/// Segment being sent.
#[pyclass(name = "SentSample", module = "aqmlab._core", frozen, get_all)]
pub struct PySentSample {
    now: u64,
    bytes: u64,
    prior_in_flight: u64,
    app_limited: bool,
    retransmission: bool,
}

impl PySentSample {
    pub fn of(sent: &SentSample) -> Self {
        PySentSample {
            now: sent.now.as_nanos(),
            bytes: sent.bytes,
            prior_in_flight: sent.prior_in_flight,
            app_limited: sent.app_limited,
            retransmission: sent.retransmission,
        }
    }
}

/// Segment considered lost.
#[pyclass(name = "LostSegment", module = "aqmlab._core", frozen, get_all)]
pub struct PyLostSegment {
    bytes: u64,
    tx_in_flight: u64,
    lost: u64,
    app_limited: bool,
}

impl PyLostSegment {
    pub fn of(lost: &LostSegment) -> Self {
        PyLostSegment {
            bytes: lost.bytes,
            tx_in_flight: lost.tx_in_flight,
            lost: lost.lost,
            app_limited: lost.app_limited,
        }
    }
}
