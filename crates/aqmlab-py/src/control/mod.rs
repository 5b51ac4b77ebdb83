//! Congestion controls written in Python. `aqmlab.control` is the Python half;
//! `docs/your-own-congestion-control.md` documents the interface.

mod objects;
mod run;

use aqmlab_core::{Lookup, Result};
use aqmlab_tcp::congestion::{ControlParams, ExternalControl, Setup};

use crate::custom::{Kind, PyConfig, PyLookup};
pub use objects::{
    PyAckSample, PyCongestionEvent, PyLostSegment, PyRateSample, PySentSample, PySetup,
};

impl Lookup<dyn ControlParams> for PyLookup<'_> {
    fn find(&self, name: &str) -> Result<Option<Box<dyn ControlParams>>> {
        PyLookup::find(self, Kind::Control, name, aqmlab_load::control, |config| Box::new(config))
    }
}

impl ControlParams for PyConfig {
    fn build(&self, setup: &Setup) -> Box<dyn ExternalControl> {
        Box::new(run::PyControl::new(self, setup))
    }
}
