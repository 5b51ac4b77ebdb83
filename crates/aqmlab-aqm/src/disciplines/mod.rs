//! The catalogue: one file a discipline, and here one line for each.
//!
//! The line declares the module too. (`cargo fmt` does not find it then:
//! `make format` gives rustfmt the files by name.)

use alloc::boxed::Box;

use aqmlab_core::{Error, Result, Span, catalogue};

use crate::custom::{self, CustomConfig};
use crate::discipline::{Context, Discipline, LinkEnv, QueueDiscipline};
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
    pub fn build(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline> {
        each!(self, params => params.build(env), custom => custom::build(custom, env))
    }

    /// See [`Discipline::FIXED`]; those of this crate's disciplines.
    pub fn fixed(&self) -> &'static [&'static str] {
        each!(self, params => fixed_of(params), _custom => &[])
    }

    /// What a queue with these parameters takes to get to those of `to`.
    ///
    /// # Errors
    /// Returns an error if `to` is the same discipline with another value of a parameter that a
    /// running queue cannot take: the error names the key.
    pub fn transition(&self, to: &QueueConfig) -> Result<Transition> {
        if self == to {
            return Ok(Transition::None);
        }
        if self.name() != to.name() {
            return Ok(Transition::Replace);
        }
        for key in self.differing(to) {
            let allowed = each!(
                self,
                params => takes(params, key),
                custom => custom.check_change(key)
            );
            allowed.map_err(|error| error.at(key))?;
        }
        Ok(Transition::Change)
    }

    /// See [`Discipline::change`].
    pub fn change(&self, queue: &mut dyn QueueDiscipline, env: &LinkEnv, cx: &mut Context<'_>) {
        each!(
            self,
            params => params.change(queue, env, cx),
            custom => custom::change(custom, queue, env, cx)
        );
    }
}

/// How a queue gets to other parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transition {
    /// Equal parameters: nothing to do.
    None,
    /// The parameters are written; packets and state stay. (Linux: `tc qdisc change`.)
    Change,
    /// A new queue takes over the packets. (Linux: `tc qdisc replace` with another kind.)
    Replace,
}

fn fixed_of<D: Discipline>(_: &D) -> &'static [&'static str] {
    D::FIXED
}

/// Refuses a parameter that a running queue of these cannot take.
pub(crate) fn takes<D: Discipline>(params: &D, key: &str) -> Result<()> {
    match fixed_of(params).contains(&key) {
        true => Err(Error::new("a running queue keeps its value of this")
            .hint("`replace` begins a new queue with it")),
        false => Ok(()),
    }
}
