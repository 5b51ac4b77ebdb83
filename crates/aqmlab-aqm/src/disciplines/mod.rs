//! The catalogue: one file a discipline, and here one line for each.
//!
//! The line declares the module too. (`cargo fmt` does not find it then:
//! `make format` gives rustfmt the files by name.)

use alloc::boxed::Box;

use aqmlab_core::{Packet, Span, catalogue};

use crate::custom::{self, CustomConfig};
use crate::discipline::{Discipline, LinkEnv, QueueDiscipline};
use crate::registry::{PRESETS, elsewhere};

catalogue! {
    /// A discipline with its parameters, ready to be built.
    pub enum QueueConfig of Discipline, or dyn CustomConfig;
    what "queue discipline", key "discipline", example "codel";
    presets PRESETS, elsewhere elsewhere;
    each each;
    // One line a discipline.
    DropTail(droptail::DropTailParams),
    Red(red::RedParams),
    RedLinux(red_linux::RedLinuxParams),
    Codel(codel::CodelParams),
    CodelDt(codel_dt::CodelDtParams),
    Cobalt(cobalt::CobaltParams),
    Pie(pie::PieParams),
    Pie2013(pie2013::Pie2013Params),
    DocsisPie(docsis_pie::DocsisPieParams),
    FqCodel(fq_codel::FqCodelParams),
    FqPie(fq_pie::FqPieParams),
    FqCobalt(fq_cobalt::FqCobaltParams),
    Cake(cake::CakeParams),
    Drr(drr::DrrParams),
    Sfq(sfq::SfqParams),
    SfqCodel(sfq_codel::SfqCodelParams),
    SfqPie(sfq_pie::SfqPieParams),
    Pi2(pi2::Pi2Params),
    DualPi2(dualpi2::DualPi2Params),
    Sfb(sfb::SfbParams),
    Blue(blue::BlueParams),
    Choke(choke::ChokeParams),
    Sred(sred::SredParams),
    Pi(pi::PiParams),
    Step(step::StepParams),
}

impl QueueConfig {
    /// See [`Discipline::SIGNALS`].
    pub fn gives_signals(&self) -> bool {
        each!(self, params => params.gives_signals())
    }
    /// See [`Discipline::slowest`].
    pub fn slowest(&self, env: &LinkEnv) -> Option<(&'static str, Span)> {
        each!(self, params => params.slowest(env))
    }
    /// Makes the state machine.
    pub fn build<P: Packet + Send + 'static>(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline<P>> {
        each!(self, params => params.build(env), custom => custom::build(custom, env))
    }
}
