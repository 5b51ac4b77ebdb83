//! Queue disciplines written in Python. `aqmlab.queue` is the Python half,
//! `docs/your-own-queue.md` the promise.

mod objects;
mod run;

use aqmlab_aqm::{CustomConfig, Handle, LinkEnv, QueueDiscipline};
use aqmlab_core::{Lookup, Result};

use crate::custom::{Kind, PyConfig, PyLookup};
pub use objects::{Context, Link, PyLimit, PyPacket};

impl Lookup<dyn CustomConfig> for PyLookup<'_> {
    fn find(&self, name: &str) -> Result<Option<Box<dyn CustomConfig>>> {
        let config = PyLookup::find(self, Kind::Queue, name)?;
        Ok(config.map(|config| Box::new(config) as Box<dyn CustomConfig>))
    }
    fn names(&self) -> Vec<&str> {
        Vec::new()
    }
}

impl CustomConfig for PyConfig {
    fn boxed_clone(&self) -> Box<dyn CustomConfig> {
        Box::new(self.clone())
    }
    fn build(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline<Handle>> {
        Box::new(run::PyQueue::new(self, env))
    }
}
