//! Arguments passed to queue disciplines written in Python. `_core.pyi` documents the members.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use aqmlab_aqm::{Backlog, LinkEnv, Reason};
use aqmlab_core::{Ecn, Limit, Packet, Stream, TcpHeader};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// States of a packet.
const ARRIVING: u8 = 0;
const QUEUED: u8 = 1;
const DROPPED: u8 = 2;
const SENT: u8 = 3;

/// Accounts of the packets of a queue.
#[derive(Default)]
pub struct Ledger {
    /// Packets that were freed without being sent or dropped.
    lost: AtomicU64,
}

impl Ledger {
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }
}

/// Packet.
#[pyclass(name = "Packet", module = "aqmlab._core", frozen)]
pub struct PyPacket {
    place: u32,
    state: AtomicU8,
    ecn: AtomicU8,
    #[pyo3(get)]
    size: u32,
    #[pyo3(get)]
    flow: u32,
    #[pyo3(get)]
    arrival: u64,
    #[pyo3(get)]
    hosts: (u32, u32),
    #[pyo3(get)]
    class_: u8,
    #[pyo3(get)]
    pure_ack: Option<u32>,
    ledger: Arc<Ledger>,
}

impl PyPacket {
    /// Returns the object of a packet that the queue keeps at `place`.
    pub fn new(
        place: u32,
        packet: &Packet,
        header: Option<TcpHeader>,
        ledger: &Arc<Ledger>,
    ) -> Self {
        let [source, destination] = packet.hosts();
        PyPacket {
            place,
            state: AtomicU8::new(ARRIVING),
            ecn: AtomicU8::new(packet.ecn() as u8),
            size: packet.size(),
            flow: packet.flow_hash(),
            arrival: packet.arrival().as_nanos(),
            hosts: (source, destination),
            class_: packet.class(),
            pure_ack: header.filter(TcpHeader::is_pure_ack).map(|header| header.ack),
            ledger: Arc::clone(ledger),
        }
    }
    pub fn place(&self) -> u32 {
        self.place
    }
    pub fn was_dropped(&self) -> bool {
        self.state.load(Relaxed) == DROPPED
    }
    pub fn is_queued_now(&self) {
        self.state.store(QUEUED, Relaxed);
    }
    /// Removes the packet from the queue, if it is queued; returns an error otherwise.
    pub fn leave(&self, ledger: &Arc<Ledger>) -> Result<(), &'static str> {
        self.check(ledger)?;
        self.state.store(SENT, Relaxed);
        Ok(())
    }
    fn check(&self, ledger: &Arc<Ledger>) -> Result<(), &'static str> {
        if !Arc::ptr_eq(&self.ledger, ledger) {
            return Err("this packet belongs to another queue");
        }
        match self.state.load(Relaxed) {
            DROPPED => Err("this packet was dropped before"),
            SENT => Err("this packet was sent before"),
            _ => Ok(()),
        }
    }
}

impl Drop for PyPacket {
    fn drop(&mut self) {
        if matches!(self.state.load(Relaxed), ARRIVING | QUEUED) {
            self.ledger.lost.fetch_add(1, Relaxed);
        }
    }
}

#[pymethods]
impl PyPacket {
    #[getter]
    fn ecn(&self) -> u8 {
        self.ecn.load(Relaxed)
    }
    #[getter]
    fn ecn_capable(&self) -> bool {
        Ecn::from_bits(self.ecn()).is_capable()
    }
    /// A copy belongs to the copied queue, which passes its accounts.
    fn __deepcopy__(&self, memo: &Bound<'_, PyDict>) -> PyResult<Self> {
        let accounts = memo.get_item(ACCOUNTS)?.ok_or_else(|| {
            PyTypeError::new_err("a packet can be copied only together with its queue")
        })?;
        Ok(PyPacket {
            state: AtomicU8::new(self.state.load(Relaxed)),
            ecn: AtomicU8::new(self.ecn()),
            ledger: Arc::clone(&accounts.cast::<Context>()?.borrow().ledger),
            place: self.place,
            size: self.size,
            flow: self.flow,
            arrival: self.arrival,
            hosts: self.hosts,
            class_: self.class_,
            pure_ack: self.pure_ack,
        })
    }
    fn __repr__(&self) -> String {
        let PyPacket { size, flow, arrival, .. } = self;
        format!("<Packet of {size} bytes, flow {flow:#010x}, arrived at {arrival} ns>")
    }
}

/// Key of the new context among the objects copied for a queue.
pub const ACCOUNTS: &str = "context of the copied queue";

/// Context of a call.
#[pyclass(module = "aqmlab._core")]
pub struct Context {
    #[pyo3(get)]
    pub now: u64,
    pub random: Stream,
    pub backlog: Backlog,
    /// Drops and marks of this call, by slot.
    pub dropped: Vec<(u32, Reason)>,
    pub marked: Vec<(u32, Reason)>,
    pub ledger: Arc<Ledger>,
    /// True during a call that may drop and mark.
    pub open: bool,
}

impl Context {
    pub fn new(random: Stream) -> Self {
        Context {
            now: 0,
            random,
            backlog: Backlog::default(),
            dropped: Vec::new(),
            marked: Vec::new(),
            ledger: Arc::default(),
            open: false,
        }
    }
    fn check(&self, packet: &PyPacket) -> PyResult<()> {
        if !self.open {
            let problem = "drops and marks are only allowed in enqueue, dequeue and on_wakeup";
            return Err(PyRuntimeError::new_err(problem));
        }
        packet.check(&self.ledger).map_err(PyValueError::new_err)
    }
}

#[pymethods]
impl Context {
    #[getter]
    fn packets(&self) -> u64 {
        self.backlog.packets
    }
    #[getter]
    fn bytes(&self) -> u64 {
        self.backlog.bytes
    }
    #[pyo3(signature = (packet, reason = "user"))]
    fn drop(&mut self, packet: &PyPacket, reason: &str) -> PyResult<()> {
        self.check(packet)?;
        let reason = reason_of(reason)?;
        if packet.state.swap(DROPPED, Relaxed) == QUEUED {
            self.backlog.packets -= 1;
            self.backlog.bytes -= u64::from(packet.size);
        }
        self.dropped.push((packet.place, reason));
        Ok(())
    }
    #[pyo3(signature = (packet, reason = "user"))]
    fn mark(&mut self, packet: &PyPacket, reason: &str) -> PyResult<()> {
        self.check(packet)?;
        let reason = reason_of(reason)?;
        if !packet.ecn_capable() {
            let problem = "a packet that is not ECN-capable cannot be marked; see ecn_capable";
            return Err(PyValueError::new_err(problem));
        }
        packet.ecn.store(Ecn::Ce as u8, Relaxed);
        self.marked.push((packet.place, reason));
        Ok(())
    }
    fn random(&mut self) -> f64 {
        self.random.uniform()
    }
}

fn reason_of(name: &str) -> PyResult<Reason> {
    Reason::ALL.into_iter().find(|reason| reason.name() == name).ok_or_else(|| {
        let known: Vec<&str> = Reason::ALL.iter().map(|reason| reason.name()).collect();
        PyValueError::new_err(format!("unknown reason `{name}`; known: {}", known.join(", ")))
    })
}

/// Link of a queue.
#[pyclass(module = "aqmlab._core", frozen, get_all)]
pub struct Link {
    rate: u64,
    base_rtt: u64,
    mtu: u64,
}

#[pymethods]
impl Link {
    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }
}

impl Link {
    pub fn of(env: &LinkEnv) -> Self {
        Link { rate: env.rate.as_bps(), base_rtt: env.base_rtt.as_nanos(), mtu: env.mtu.get() }
    }
}

/// Capacity of a queue.
#[pyclass(name = "Limit", module = "aqmlab._core", frozen)]
pub struct PyLimit(pub Limit);

#[pymethods]
impl PyLimit {
    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }
    fn admits(&self, packets: u64, bytes: u64, size: u64) -> bool {
        self.0.admits(packets, bytes, size)
    }
    fn __repr__(&self) -> String {
        format!("<Limit {}>", self.0)
    }
}
