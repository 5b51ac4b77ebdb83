//! The catalogue: one file a discipline, and here one line for each.
//!
//! The line declares the module too. (`cargo fmt` does not find it then:
//! `make format` gives rustfmt the files by name.)

use aqmlab_core::{Custom, Entry, Packet, Params, Result, Span, Value};

use crate::custom::{self, CustomConfig};
use crate::discipline::{Discipline, LinkEnv, QueueDiscipline};

macro_rules! disciplines {
    ($($Variant:ident($module:ident::$Params:ident)),+ $(,)?) => {
        $( pub mod $module; )+

        /// A discipline with its parameters, ready to be built.
        #[derive(Clone, Debug, PartialEq)]
        pub enum QueueConfig {
            $(
                #[allow(missing_docs)]
                $Variant($module::$Params),
            )+
            /// One that is not in the catalogue.
            Custom(Custom<dyn CustomConfig>),
        }

        /// All disciplines.
        pub fn entries() -> Vec<Entry> {
            vec![$(Entry {
                name: <$module::$Params>::NAME,
                summary: <$module::$Params>::SUMMARY,
                params: <$module::$Params>::specs(),
            }),+]
        }

        impl QueueConfig {
            /// The discipline of this name with its default parameters.
            pub(crate) fn default_of(name: &str) -> Option<QueueConfig> {
                $( if name == <$module::$Params>::NAME {
                    return Some(QueueConfig::$Variant(<$module::$Params>::default()));
                } )+
                None
            }
            pub(crate) fn set(&mut self, key: &str, value: &Value) -> Result<()> {
                match self {
                    $( QueueConfig::$Variant(params) => params.set(key, value), )+
                    QueueConfig::Custom(custom) => custom.config_mut().set(key, value),
                }
            }
            pub(crate) fn check(&self) -> Result<()> {
                match self {
                    $( QueueConfig::$Variant(params) => params.check(), )+
                    QueueConfig::Custom(custom) => custom.config().check(),
                }
            }
            /// The discipline's name.
            pub fn name(&self) -> &str {
                match self {
                    $( QueueConfig::$Variant(_) => <$module::$Params>::NAME, )+
                    QueueConfig::Custom(custom) => custom.config().name(),
                }
            }
            /// Its parameters with their values.
            pub fn settings(&self) -> Vec<(&str, Value)> {
                match self {
                    $( QueueConfig::$Variant(params) => params.entries(), )+
                    QueueConfig::Custom(custom) => custom.config().entries(),
                }
            }
            /// See [`Discipline::SIGNALS`].
            pub fn gives_signals(&self) -> bool {
                match self {
                    $( QueueConfig::$Variant(_) => <$module::$Params>::SIGNALS, )+
                    QueueConfig::Custom(custom) => custom.config().gives_signals(),
                }
            }
            /// See [`Discipline::slowest`].
            pub fn slowest(&self, env: &LinkEnv) -> Option<(&'static str, Span)> {
                match self {
                    $( QueueConfig::$Variant(params) => params.slowest(env), )+
                    QueueConfig::Custom(custom) => custom.config().slowest(env),
                }
            }
            /// Makes the state machine.
            pub fn build<P: Packet + Send + 'static>(
                &self,
                env: &LinkEnv,
            ) -> Box<dyn QueueDiscipline<P>> {
                match self {
                    $( QueueConfig::$Variant(params) => params.build(env), )+
                    QueueConfig::Custom(custom) => custom::build(custom.config(), env),
                }
            }
        }
    };
}

// One line a discipline.
disciplines! {
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
