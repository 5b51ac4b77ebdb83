//! Queue disciplines written in Python. `aqmlab.queue` is the Python half; `docs/your-own-queue.md`
//! documents the interface.

mod objects;
mod run;

use aqmlab_aqm::{Discipline, LinkEnv, QueueDiscipline};
use aqmlab_core::{AnyComponent, Error, Lookup, Result};
use aqmlab_load::CODE;

use crate::custom::{Kind, PyConfig, PyLookup};
pub use objects::{Context, Link, PyLimit, PyPacket};

impl Lookup<dyn Discipline> for PyLookup<'_> {
    fn find(&self, name: &str) -> Result<Option<Box<dyn Discipline>>> {
        PyLookup::find(self, Kind::Queue, name, aqmlab_load::queue, |config| Box::new(config))
    }
}

impl Discipline for PyConfig {
    fn build(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline> {
        Box::new(run::PyQueue::new(self, env))
    }
    fn check_change(&self, key: &str) -> Result<()> {
        if self.class.has("change") && key != CODE {
            return Ok(());
        }
        let problem = match key {
            CODE => "the code of the class has changed".to_string(),
            _ => {
                format!("`{}` has no method `change`, which would apply other values", self.name())
            }
        };
        Err(Error::new(problem).hint("`replace` starts a new queue with it"))
    }
    fn change(
        &self,
        queue: &mut dyn QueueDiscipline,
        env: &LinkEnv,
        cx: &mut aqmlab_aqm::Context<'_>,
    ) {
        queue.machine::<run::PyQueue>().change(self, env, cx);
    }
}
