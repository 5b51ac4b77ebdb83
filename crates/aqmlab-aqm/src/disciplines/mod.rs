//! The catalogue: one file a discipline, and here one line for each.
//!
//! The line declares the module too. (`cargo fmt` does not find it then:
//! `make format` gives rustfmt the files by name.)

use aqmlab_core::catalogue;

use crate::discipline::Discipline;
use crate::registry::{PRESETS, elsewhere};

catalogue! {
    dyn Discipline;
    what "queue discipline", key "discipline", example "codel", default "droptail";
    presets PRESETS, elsewhere elsewhere;
    // One line a discipline.
    droptail::DropTailParams,
    red::RedParams,
    red_linux::RedLinuxParams,
    codel::CodelParams,
    codel_dt::CodelDtParams,
    cobalt::CobaltParams,
    pie::PieParams,
    pie2013::Pie2013Params,
    docsis_pie::DocsisPieParams,
    fq_codel::FqCodelParams,
    fq_pie::FqPieParams,
    fq_cobalt::FqCobaltParams,
    cake::CakeParams,
    drr::DrrParams,
    sfq::SfqParams,
    sfq_codel::SfqCodelParams,
    sfq_pie::SfqPieParams,
    pi2::Pi2Params,
    dualpi2::DualPi2Params,
    sfb::SfbParams,
    bernoulli::BernoulliParams,
    blue::BlueParams,
    choke::ChokeParams,
    sred::SredParams,
    pi::PiParams,
    step::StepParams,
}
