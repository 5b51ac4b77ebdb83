//! Endpoints of other crates: a transport that is not in here, between the
//! same queues and beside TCP.
//!
//! One is written like a congestion control of one's own: `params!` for what
//! can be set, [`EndpointParams`] for its name and how its two ends are made,
//! and types that implement [`Endpoint`] and [`Source`] or [`Sink`]. [`Endpoints`] gives it to
//! whoever reads scenarios, by its name.

use std::fmt;

use aqmlab_core::{Added, CustomParams, Lookup, Params, Result, Value};

use super::{Endpoint, EndpointConfig, Sink, Source};

/// What the ends of a flow are made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointSetup {
    /// Bytes to transfer; `None` without end.
    pub size: Option<u64>,
    /// More bytes may be supplied later.
    pub is_open: bool,
    /// The most bytes of data in a packet: `transport.mss`.
    pub mss: u32,
    /// Bytes of all headers of a packet: `transport.header`.
    pub header: u32,
    /// For what is drawn; each flow has its own.
    pub seed: u64,
}

/// The parameters of an endpoint of another crate.
pub trait EndpointParams: Params + Clone + fmt::Debug + Send + Sync + 'static {
    /// The name in scenario files.
    const NAME: &'static str;
    /// Makes both ends of a flow.
    fn build(&self, setup: &EndpointSetup) -> BoxedEnds;
    /// Makes the ends of a connection that carries data in both directions: those of the flow of
    /// the opening host, and those of the flow back. Packets of each flow are made by its source
    /// and arrive at its sink. Without such connections the two flows do without each other.
    fn pair(&self, _setup: &EndpointSetup) -> Option<[BoxedEnds; 2]> {
        None
    }
    /// Checks what no single parameter shows.
    ///
    /// # Errors
    /// If the parameters contradict each other.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// The two ends of a flow, whatever they are.
pub type BoxedEnds = (Box<dyn MessageSource>, Box<dyn MessageSink>);

/// A source whose packets carry messages.
pub trait MessageSource: Endpoint + Source {}
impl<T: Endpoint + Source> MessageSource for T {}

/// A sink whose packets carry messages.
pub trait MessageSink: Endpoint + Sink {}
impl<T: Endpoint + Sink> MessageSink for T {}

/// The configuration of an endpoint that is not in here.
pub trait CustomEndpoint: CustomParams {
    /// A copy.
    fn boxed_clone(&self) -> Box<dyn CustomEndpoint>;
    /// Makes both ends of a flow.
    fn build(&self, setup: &EndpointSetup) -> BoxedEnds;
    /// Makes the ends of a connection with data in both directions, if it has such.
    fn pair(&self, setup: &EndpointSetup) -> Option<[BoxedEnds; 2]>;
}

impl Clone for Box<dyn CustomEndpoint> {
    fn clone(&self) -> Self {
        (**self).boxed_clone()
    }
}

/// Endpoints of another crate. Without any, only the catalogue is known.
#[derive(Default)]
pub struct Endpoints(Added<dyn CustomEndpoint>);

impl Endpoints {
    /// Adds an endpoint under its parameters' name.
    ///
    /// # Errors
    /// If the name is taken.
    pub fn with<P: EndpointParams>(self) -> Result<Endpoints> {
        self.0.with::<EndpointConfig>(Box::new(Foreign(P::default()))).map(Endpoints)
    }
}

impl Lookup<dyn CustomEndpoint> for Endpoints {
    fn find(&self, name: &str) -> Result<Option<Box<dyn CustomEndpoint>>> {
        self.0.find(name)
    }
    fn names(&self) -> Vec<&str> {
        self.0.names()
    }
}

/// An endpoint of another crate.
#[derive(Debug)]
struct Foreign<P>(P);

impl<P: EndpointParams> CustomParams for Foreign<P> {
    fn name(&self) -> &str {
        P::NAME
    }
    fn set(&mut self, key: &str, value: &Value) -> Result<()> {
        self.0.set(key, value)
    }
    fn check(&self) -> Result<()> {
        self.0.check()
    }
    fn entries(&self) -> Vec<(&str, Value)> {
        self.0.entries()
    }
}

impl<P: EndpointParams> CustomEndpoint for Foreign<P> {
    fn boxed_clone(&self) -> Box<dyn CustomEndpoint> {
        Box::new(Foreign(self.0.clone()))
    }
    fn build(&self, setup: &EndpointSetup) -> BoxedEnds {
        self.0.build(setup)
    }
    fn pair(&self, setup: &EndpointSetup) -> Option<[BoxedEnds; 2]> {
        self.0.pair(setup)
    }
}
