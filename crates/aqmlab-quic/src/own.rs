//! A user's own congestion controller in place of a library's.

use std::any::type_name;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use aqmlab_core::{AnyComponent, Result, Value};
use aqmlab_sim::endpoints::{BoxedEnds, EndpointParams, EndpointSetup};
use noq_proto::congestion as noq;
use quinn_proto::congestion as quinn;

use crate::params::{Library, QuicParams};

/// Part of a library in place of the adapter's: a controller, by its type, or true TLS sessions.
#[derive(Clone)]
pub enum Own {
    /// Controller of noq.
    Noq(&'static str, Arc<dyn noq::ControllerFactory + Send + Sync>),
    /// Controller of quinn.
    Quinn(&'static str, Arc<dyn quinn::ControllerFactory + Send + Sync>),
    /// Sessions of rustls for this library.
    #[cfg(feature = "tls")]
    Tls(Library),
}

impl Own {
    /// Name of the type.
    pub fn name(&self) -> &'static str {
        match self {
            Own::Noq(name, _) | Own::Quinn(name, _) => name,
            #[cfg(feature = "tls")]
            Own::Tls(_) => "tls",
        }
    }

    /// Library whose controller it is.
    pub fn library(&self) -> Library {
        match self {
            Own::Noq(..) => Library::Noq,
            Own::Quinn(..) => Library::Quinn,
            #[cfg(feature = "tls")]
            Own::Tls(library) => *library,
        }
    }
}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Marks controllers of noq.
pub enum ForNoq {}

/// Marks controllers of quinn.
pub enum ForQuinn {}

/// A function that makes a controller, such as `|| Box::new(MyController::default())`. The MTU
/// at the start is passed to `on_mtu_update`. `Library` follows from the controller's trait.
pub trait Code<Library> {
    /// The controller for [`Evaluation`](crate::Evaluation).
    fn own(self) -> Own;
}

/// Calls the function for each connection.
struct Factory<F>(F);

/// Makes functions that make controllers of `$library` its factories.
macro_rules! factories {
    ($($library:ident $For:ident $Own:ident;)+) => { $(
        impl<F, C> Code<$For> for F
        where
            F: Fn() -> Box<C> + Send + Sync + 'static,
            C: $library::Controller + 'static,
        {
            fn own(self) -> Own {
                Own::$Own(type_name::<C>(), Arc::new(Factory(self)))
            }
        }

        impl<F, C> $library::ControllerFactory for Factory<F>
        where
            F: Fn() -> Box<C>,
            C: $library::Controller + 'static,
        {
            fn build(self: Arc<Self>, _now: Instant, mtu: u16) -> Box<dyn $library::Controller> {
                let mut controller = (self.0)();
                controller.on_mtu_update(mtu);
                controller
            }
        }
    )+ };
}
factories! {
    noq ForNoq Noq;
    quinn ForQuinn Quinn;
}

/// The endpoint `quic` with a part in place of the adapter's. With a user's controller, `controller`
/// has no effect.
#[derive(Clone, Debug)]
pub(crate) struct OwnParams {
    params: QuicParams,
    own: Own,
}

impl OwnParams {
    pub(crate) fn new(own: Own) -> Self {
        let params = QuicParams { stack: own.library(), ..QuicParams::default() };
        OwnParams { params, own }
    }
}

impl AnyComponent for OwnParams {
    fn name(&self) -> &str {
        self.params.name()
    }
    fn set(&mut self, key: &str, value: &Value) -> Result<()> {
        AnyComponent::set(&mut self.params, key, value)
    }
    fn check(&self) -> Result<()> {
        AnyComponent::check(&self.params)
    }
    fn entries(&self) -> Vec<(&str, Value)> {
        AnyComponent::entries(&self.params)
    }
}

impl EndpointParams for OwnParams {
    fn build(&self, setup: &EndpointSetup) -> BoxedEnds {
        self.params.ends(Some(&self.own), setup)
    }
    fn pair(&self, setup: &EndpointSetup) -> Option<[BoxedEnds; 2]> {
        Some(self.params.pairs(Some(&self.own), setup))
    }
    fn has_tls(&self) -> bool {
        true
    }
    fn is_udp(&self) -> bool {
        true
    }
    fn datagrams(&self, setup: &EndpointSetup) -> Option<BoxedEnds> {
        self.params.datagrams.then(|| self.params.ends(Some(&self.own), setup))
    }
}
