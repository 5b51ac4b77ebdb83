//! Endpoints of other crates: transports that use the same queues as TCP.
//!
//! An endpoint is written like a custom congestion control: `params!` declares its parameters,
//! [`EndpointParams`] its name and constructor, and types implement [`Endpoint`] and [`Source`] or
//! [`Sink`]. [`Endpoints`] passes it to the parser of scenarios, by its name.

use std::fmt;

use aqmlab_aqm::Note;
use aqmlab_core::{Added, CustomParams, Lookup, Params, Result, Value};

use super::{Endpoint, EndpointConfig, Sink, Source};

/// Setup of the ends of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointSetup {
    /// Bytes to transfer; `None`: no end.
    pub size: Option<u64>,
    /// True if more bytes may be written later.
    pub is_open: bool,
    /// Maximum bytes of data in a packet: `transport.mss`.
    pub mss: u32,
    /// Bytes of all headers of a packet: `transport.header`.
    pub header: u32,
    /// Seed of random draws, different for each flow.
    pub seed: u64,
}

/// Parameters of an endpoint of another crate.
pub trait EndpointParams: Params + Clone + fmt::Debug + Send + Sync + 'static {
    /// Name in scenario files.
    const NAME: &'static str;
    /// Creates both ends of a flow.
    fn build(&self, setup: &EndpointSetup) -> BoxedEnds;
    /// Makes the ends of a connection that carries data in both directions: those of the flow of
    /// the opening host, and those of the flow back. Packets of each flow are made by its source
    /// and arrive at its sink. Without such connections the two flows do without each other.
    fn pair(&self, _setup: &EndpointSetup) -> Option<[BoxedEnds; 2]> {
        None
    }
    /// Checks combinations of parameters.
    ///
    /// # Errors
    /// Returns an error if the parameters contradict each other.
    fn check(&self) -> Result<()> {
        Ok(())
    }
    /// Returns statements that a reader of the results needs.
    fn notes(&self) -> Vec<Note> {
        Vec::new()
    }
}

/// Both ends of a flow.
pub type BoxedEnds = (Box<dyn MessageSource>, Box<dyn MessageSink>);

/// Source whose packets carry messages. Every source that is `Clone` is one.
pub trait MessageSource: Endpoint + Source {
    /// Returns a copy in the same state, for snapshots; `None` if it cannot be copied.
    fn boxed_clone(&self) -> Option<Box<dyn MessageSource>>;
}
impl<T: Endpoint + Source + Clone + 'static> MessageSource for T {
    fn boxed_clone(&self) -> Option<Box<dyn MessageSource>> {
        Some(Box::new(self.clone()))
    }
}

/// Sink whose packets carry messages. Every sink that is `Clone` is one.
pub trait MessageSink: Endpoint + Sink {
    /// Returns a copy in the same state, for snapshots; `None` if it cannot be copied.
    fn boxed_clone(&self) -> Option<Box<dyn MessageSink>>;
}
impl<T: Endpoint + Sink + Clone + 'static> MessageSink for T {
    fn boxed_clone(&self) -> Option<Box<dyn MessageSink>> {
        Some(Box::new(self.clone()))
    }
}

/// # Panics
/// Panics if the source cannot be copied: see [`MessageSource::boxed_clone`].
impl Clone for Box<dyn MessageSource> {
    fn clone(&self) -> Self {
        (**self).boxed_clone().expect("the caller has checked the flow")
    }
}

/// # Panics
/// Panics if the sink cannot be copied: see [`MessageSink::boxed_clone`].
impl Clone for Box<dyn MessageSink> {
    fn clone(&self) -> Self {
        (**self).boxed_clone().expect("the caller has checked the flow")
    }
}

/// Configuration of a custom endpoint.
pub trait CustomEndpoint: CustomParams {
    /// Returns a copy.
    fn boxed_clone(&self) -> Box<dyn CustomEndpoint>;
    /// Creates both ends of a flow.
    fn build(&self, setup: &EndpointSetup) -> BoxedEnds;
    /// Makes the ends of a connection with data in both directions, if it has such.
    fn pair(&self, setup: &EndpointSetup) -> Option<[BoxedEnds; 2]>;
    /// Statements that a reader of the results needs.
    fn notes(&self) -> Vec<Note>;
}

impl Clone for Box<dyn CustomEndpoint> {
    fn clone(&self) -> Self {
        (**self).boxed_clone()
    }
}

/// Registry of custom endpoints; the default contains none.
#[derive(Default)]
pub struct Endpoints(Added<dyn CustomEndpoint>);

impl Endpoints {
    /// Adds an endpoint under its parameters' name.
    ///
    /// # Errors
    /// Returns an error if the name is taken.
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

/// Endpoint of another crate.
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
    fn notes(&self) -> Vec<Note> {
        self.0.notes()
    }
}
