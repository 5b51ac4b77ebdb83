//! Python extension module `aqmlab._core`: the only interface between the engine and Python. It
//! converts values, errors and tables, and releases the GIL while the engine runs. It contains no
//! computations of its own.

mod columns;
mod control;
mod convert;
mod custom;
mod emulator;
mod queue;
mod record;
mod reference;
mod replay;
mod run;
mod runner;
mod scenario;
mod senders;
mod spill;
mod stuck;
mod tables;
mod words;

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("__engine__", env!("AQMLAB_ENGINE"))?; // build.rs
    module.add("InputError", module.py().get_type::<convert::InputError>())?;
    module.add("CustomError", module.py().get_type::<convert::CustomError>())?;
    module.add("ControlError", module.py().get_type::<convert::ControlError>())?;
    module.add("QueueError", module.py().get_type::<convert::QueueError>())?;
    module.add_class::<scenario::PyScenario>()?;
    module.add_class::<scenario::Files>()?;
    module.add_class::<queue::PyPacket>()?;
    module.add_class::<queue::Context>()?;
    module.add_class::<queue::Link>()?;
    module.add_class::<queue::PyLimit>()?;
    module.add_class::<control::PySetup>()?;
    module.add_class::<control::PyAckSample>()?;
    module.add_class::<control::PyRateSample>()?;
    module.add_class::<control::PyCongestionEvent>()?;
    module.add_class::<control::PySentSample>()?;
    module.add_class::<control::PyLostSegment>()?;
    module.add_function(wrap_pyfunction!(custom::describe, module)?)?;
    module.add_class::<run::PyRun>()?;
    module.add_class::<run::PySnapshot>()?;
    module.add_function(wrap_pyfunction!(run::advance_all, module)?)?;
    module.add_class::<runner::Runner>()?;
    module.add_class::<tables::Results>()?;
    module.add_class::<columns::ArrowTable>()?;
    module.add_function(wrap_pyfunction!(reference::reference, module)?)?;
    module.add_function(wrap_pyfunction!(replay::replay, module)?)?;
    module.add_function(wrap_pyfunction!(senders::pack_sender, module)?)?;
    module.add_function(wrap_pyfunction!(senders::replay_sender, module)?)?;
    module.add_function(wrap_pyfunction!(senders::close_sender, module)?)?;
    module.add_function(wrap_pyfunction!(senders::next_sender, module)?)?;
    module.add_function(wrap_pyfunction!(emulator::emulate, module)?)?;
    module.add_function(wrap_pyfunction!(emulator::check_playable, module)?)?;
    module.add_function(wrap_pyfunction!(emulator::has_far_end_here, module)?)?;
    module.add_function(wrap_pyfunction!(emulator::play, module)?)?;
    module.add_function(wrap_pyfunction!(emulator::emulate_hosts, module)?)?;
    module.add_class::<emulator::Emulation>()?;
    module.add_function(wrap_pyfunction!(scenario::parse_quantity, module)?)?;
    module.add_function(wrap_pyfunction!(words::parse_queue, module)?)?;
    module.add_function(wrap_pyfunction!(words::parse_shaper, module)?)?;
    module.add_function(wrap_pyfunction!(words::queue_in_tc, module)?)?;
    module.add_function(wrap_pyfunction!(words::queue_in_words, module)?)?;
    module.add_function(wrap_pyfunction!(words::shaper_in_tc, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::parse_value, module)?)
}
