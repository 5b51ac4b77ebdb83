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
        if let Some(loaded) = self.library(name, aqmlab_load::control)? {
            return Ok(Some(loaded));
        }
        let config = PyLookup::find(self, Kind::Control, name)?;
        Ok(config.map(|config| Box::new(config) as Box<dyn ControlParams>))
    }
}

impl ControlParams for PyConfig {
    fn build(&self, setup: &Setup) -> Box<dyn ExternalControl> {
        Box::new(run::PyControl::new(self, setup))
    }
}
