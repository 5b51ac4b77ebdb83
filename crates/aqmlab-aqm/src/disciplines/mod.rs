//! The catalogue: one file a discipline, and here one line for each.
//!
//! The line declares the module too. (`cargo fmt` does not find it then:
//! `make format` gives rustfmt the files by name.)

use aqmlab_core::{Entry, Packet, Params, Result, Value};

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
                match self { $( QueueConfig::$Variant(params) => params.set(key, value), )+ }
            }
            pub(crate) fn check(&self) -> Result<()> {
                match self { $( QueueConfig::$Variant(params) => params.check(), )+ }
            }
            /// The discipline's name.
            pub fn name(&self) -> &'static str {
                match self { $( QueueConfig::$Variant(_) => <$module::$Params>::NAME, )+ }
            }
            /// Its parameters with their values.
            pub fn settings(&self) -> Vec<(&'static str, Value)> {
                match self { $( QueueConfig::$Variant(params) => params.entries(), )+ }
            }
            /// Makes the state machine.
            pub fn build<P: Packet + Send + 'static>(
                &self,
                env: &LinkEnv,
            ) -> Box<dyn QueueDiscipline<P>> {
                match self { $( QueueConfig::$Variant(params) => params.build(env), )+ }
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
    Pie(pie::PieParams),
    Pie2013(pie2013::Pie2013Params),
    FqCodel(fq_codel::FqCodelParams),
    FqPie(fq_pie::FqPieParams),
    Cake(cake::CakeParams),
    Sfq(sfq::SfqParams),
    SfqCodel(sfq_codel::SfqCodelParams),
    Pi2(pi2::Pi2Params),
    DualPi2(dualpi2::DualPi2Params),
    Sfb(sfb::SfbParams),
    Blue(blue::BlueParams),
    Choke(choke::ChokeParams),
}
