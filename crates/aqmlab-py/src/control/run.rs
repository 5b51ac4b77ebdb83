//! Congestion control with Python methods.
//!
//! Each call acquires the GIL, and then reads the object's outputs (window, pacing rate), which the
//! sender uses until the next call without entering Python. The object belongs to one connection,
//! so results do not depend on threads or on other runs.

use std::sync::Arc;

use aqmlab_core::{Limit, Rate, Span, Time};
use aqmlab_tcp::congestion::{
    AckSample, CongestionControl, CongestionEvent, ExternalControl, LostSegment, SentSample, Setup,
};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::objects::{PyAckSample, PyCongestionEvent, PyLostSegment, PySentSample, PySetup};
use crate::custom::fault::{Abandonment, Fault, attached, deep_copy, show};
use crate::custom::{Class, PyConfig};

aqmlab_aqm::named! {
    /// Notification method of a control.
    pub enum Call {
        Ack = "on_ack",
        Congestion = "on_congestion",
        Undo = "on_undo",
        Connected = "on_connected",
        Idle = "on_idle",
        Ssthresh = "set_ssthresh",
        Sent = "on_sent",
        Lost = "on_lost",
        RecoveryExit = "on_recovery_exit",
    }
}

/// Last outputs of the object.
#[derive(Clone, Copy)]
struct Answers {
    window: u64,
    ssthresh: u64,
    pacing_rate: Option<Rate>,
}

/// Instance of a class.
pub struct PyControl {
    class: Arc<Class>,
    object: Py<PyAny>,
    /// Methods, by [`Call`].
    methods: [Option<Py<PyAny>>; Call::ALL.len()],
    observe: Option<Py<PyAny>>,
    has_ssthresh: bool,
    has_pacing_rate: bool,
    needs_rate_samples: bool,
    recovers_by_itself: bool,
    answers: Answers,
    now: Time,
    abandonment: Abandonment,
}

impl PyControl {
    /// Creates an instance of the class.
    ///
    /// # Panics
    /// Panics with a [`Failure`](crate::custom::fault::Failure) if the constructor fails.
    pub fn new(config: &PyConfig, setup: &Setup) -> Self {
        attached(|py| {
            Self::make(py, config, setup)
                .map_err(|fault| fault.report(py, &config.class, "__init__", Time::ZERO))
        })
    }

    fn make(py: Python<'_>, config: &PyConfig, setup: &Setup) -> Result<Self, Fault> {
        let limit = |limit: Limit| {
            let bytes = match limit {
                Limit::Packets(packets) => packets.saturating_mul(setup.mss),
                Limit::Bytes(bytes) => bytes.get(),
                Limit::Bdp(_) | Limit::Unlimited => u64::MAX / 4,
            };
            Ok(bytes.into_pyobject(py)?.into_any())
        };
        let object = config.make(py, PySetup::of(setup), &limit)?;
        let answers = Answers {
            window: setup.initial_window,
            ssthresh: setup.initial_ssthresh,
            pacing_rate: None,
        };
        let mut control = Self::of_object(&config.class, object, answers)?;
        control.answers = control.ask(py)?;
        Ok(control)
    }

    fn of_object(
        class: &Arc<Class>,
        object: Bound<'_, PyAny>,
        answers: Answers,
    ) -> Result<Self, Fault> {
        let optional = |name: &str| {
            class.has(name).then(|| object.getattr(name).map(Bound::unbind)).transpose()
        };
        let mut methods = [const { None }; Call::ALL.len()];
        for (place, call) in methods.iter_mut().zip(Call::ALL) {
            *place = optional(call.name())?;
        }
        let says = |name: &str| -> Result<bool, Fault> {
            if !class.has(name) {
                return Ok(false);
            }
            let answer = object.getattr(name)?;
            let problem = |_| Fault::Broken(format!("{name} is {answer}, not True or False"));
            answer.extract().map_err(problem)
        };
        Ok(PyControl {
            class: Arc::clone(class),
            methods,
            observe: optional("observe")?,
            has_ssthresh: class.has("ssthresh"),
            has_pacing_rate: class.has("pacing_rate"),
            needs_rate_samples: says("needs_rate_samples")?,
            recovers_by_itself: says("recovers_by_itself")?,
            answers,
            object: object.unbind(),
            now: Time::ZERO,
            abandonment: Abandonment::of_this_thread(),
        })
    }

    /// Reads the outputs of the object.
    fn ask(&self, py: Python<'_>) -> Result<Answers, Fault> {
        let object = self.object.bind(py);
        let bytes = |name: &Bound<'_, PyString>| -> Result<u64, Fault> {
            let answer = object.getattr(name)?;
            let problem = |_| Fault::Broken(format!("{name} is {answer}, not whole bytes"));
            answer.extract().map_err(problem)
        };
        let mut answers = Answers { window: bytes(intern!(py, "window"))?, ..self.answers };
        if self.has_ssthresh {
            answers.ssthresh = bytes(intern!(py, "ssthresh"))?;
        }
        if self.has_pacing_rate {
            let answer = object.getattr(intern!(py, "pacing_rate"))?;
            let rate = answer.extract::<Option<u64>>().ok().filter(|rate| *rate != Some(0));
            let rate = rate.ok_or_else(|| {
                let allowed = "whole bits per second from 1, or None";
                Fault::Broken(format!("pacing_rate is {answer}, not {allowed}"))
            })?;
            answers.pacing_rate = rate.map(Rate::from_bps);
        }
        Ok(answers)
    }

    /// Calls a notification method, if the object has it, and reads its outputs; a fault ends the
    /// run.
    fn tell(
        &mut self,
        call: Call,
        tell: impl for<'py> FnOnce(Python<'py>, &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
    ) {
        let Some(method) = &self.methods[call as usize] else { return };
        self.abandonment.check();
        self.answers = attached(|py| {
            let told = tell(py, method.bind(py)).map_err(Fault::Raised);
            told.and_then(|_| self.ask(py))
                .map_err(|fault| fault.report(py, &self.class, call.name(), self.now))
        });
    }
}

impl ExternalControl for PyControl {
    /// # Panics
    /// Panics with a [`Failure`](crate::custom::fault::Failure) if the object cannot be copied.
    fn boxed_clone(&self) -> Option<Box<dyn ExternalControl>> {
        Some(Box::new(attached(|py| {
            let object = deep_copy(&self.class, self.object.bind(py), &PyDict::new(py))?;
            let mut copy = Self::of_object(&self.class, object, self.answers)
                .map_err(|fault| fault.report(py, &self.class, "on_ack", self.now))?;
            copy.now = self.now;
            Ok(copy)
        })))
    }
}

impl CongestionControl for PyControl {
    fn on_ack(&mut self, sample: &AckSample) {
        self.now = sample.now;
        self.tell(Call::Ack, |py, method| method.call1((PyAckSample::of(py, sample)?,)));
    }
    fn on_congestion(&mut self, event: &CongestionEvent) {
        self.now = event.now;
        self.tell(Call::Congestion, |_, method| method.call1((PyCongestionEvent::of(event),)));
    }
    fn on_undo(&mut self) {
        self.tell(Call::Undo, |_, method| method.call0());
    }
    fn on_connected(&mut self, now: Time, rtt: Option<Span>) {
        self.now = now;
        let told = (now.as_nanos(), rtt.map(Span::as_nanos));
        self.tell(Call::Connected, |_, method| method.call1(told));
    }
    fn on_idle(&mut self, restart_window: u64) {
        self.tell(Call::Idle, |_, method| method.call1((restart_window,)));
    }
    fn set_ssthresh(&mut self, ssthresh: u64) {
        self.tell(Call::Ssthresh, |_, method| method.call1((ssthresh,)));
    }
    fn on_sent(&mut self, sent: &SentSample) {
        self.now = sent.now;
        self.tell(Call::Sent, |py, method| method.call1((PySentSample::of(py, sent)?,)));
    }
    fn on_lost(&mut self, lost: &LostSegment) {
        self.tell(Call::Lost, |py, method| method.call1((PyLostSegment::of(py, lost)?,)));
    }
    fn on_recovery_exit(&mut self, in_flight: u64) {
        self.tell(Call::RecoveryExit, |_, method| method.call1((in_flight,)));
    }
    fn window(&self) -> u64 {
        self.answers.window
    }
    fn ssthresh(&self) -> u64 {
        self.answers.ssthresh
    }
    fn pacing_rate(&self) -> Option<Rate> {
        self.answers.pacing_rate
    }
    fn needs_rate_samples(&self) -> bool {
        self.needs_rate_samples
    }
    fn recovers_by_itself(&self) -> bool {
        self.recovers_by_itself
    }
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        show(&self.class, self.observe.as_ref(), self.now, see);
    }
}
