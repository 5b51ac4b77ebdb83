//! Parameters of endpoints, and endpoints of other crates: transports that use the same queues as TCP.
//!
//! An endpoint is written like a congestion control: `params!` declares its parameters, which
//! implement [`Component`](aqmlab_core::Component) and [`EndpointParams`], and types implement
//! [`Endpoint`] and [`Source`] or [`Sink`]. [`Endpoints`] passes one of another crate to the parser
//! of scenarios, by its name.

use std::fmt;
use std::io::Write;
use std::sync::Arc;

use aqmlab_aqm::Note;
use aqmlab_core::{AnyComponent, Config, Registry, cloneable};

use super::{Endpoint, Sink, Source};

/// File that an endpoint writes.
pub type LogFile = Box<dyn Write + Send + Sync>;

/// Log of a connection, which its endpoint writes.
#[derive(Clone)]
pub struct ConnectionLog {
    name: String,
    open: Arc<dyn Fn(&str) -> LogFile + Send + Sync>,
}

impl fmt::Debug for ConnectionLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConnectionLog({})", self.name)
    }
}

impl ConnectionLog {
    /// Creates the log of a connection; `open` creates the file for an end.
    pub fn new<F>(name: String, open: F) -> Self
    where
        F: Fn(&str) -> LogFile + Send + Sync + 'static,
    {
        ConnectionLog { name, open: Arc::new(open) }
    }

    /// Returns the name of the flow that opens the connection, as in the tables of results.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Creates the file of one end, `client` or `server`. Errors are reported when the run has
    /// ended.
    #[must_use]
    pub fn open(&self, end: &str) -> LogFile {
        (self.open)(end)
    }
}

/// Setup of the ends of a flow.
#[derive(Clone, Debug, Default)]
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
    /// Log that the endpoint writes, if the run is recorded so.
    pub log: Option<ConnectionLog>,
}

cloneable!(pub trait CloneParams of EndpointParams);

/// Parameters of an endpoint, which create its flows. An endpoint of the catalogue, and one of
/// another crate, implements this and [`Component`](aqmlab_core::Component).
pub trait EndpointParams: AnyComponent + CloneParams {
    /// Creates both ends of a flow.
    fn build(&self, setup: &EndpointSetup) -> BoxedEnds;
    /// Creates the ends of a connection that carries data in both directions: those of the flow of
    /// the opening host, and those of the flow back. The source of each flow makes its packets,
    /// which arrive at its sink. `None`: the two flows have no common connection.
    fn pair(&self, _setup: &EndpointSetup) -> Option<[BoxedEnds; 2]> {
        None
    }
    /// Creates the ends of a connection that carries datagrams ([`Source::post`], [`Sink::take`]);
    /// `None`: datagrams are packets of their own.
    fn datagrams(&self, _setup: &EndpointSetup) -> Option<BoxedEnds> {
        None
    }
    /// True if the messages of its packets are the payload of UDP datagrams: captures contain them.
    fn is_udp(&self) -> bool {
        false
    }
    /// True if its handshake contains that of TLS.
    fn has_tls(&self) -> bool {
        false
    }
    /// Returns statements that a reader of the results needs.
    fn notes(&self) -> Vec<Note> {
        Vec::new()
    }
}

/// An endpoint with its parameters, as a scenario names it.
pub type EndpointConfig = Config<dyn EndpointParams>;

/// Endpoints of other crates. Without any, only the built-in ones are known.
pub type Endpoints = Registry<dyn EndpointParams>;

impl dyn EndpointParams {
    /// Returns whether the endpoint is TCP, whose ends a flow holds in place.
    pub fn is_tcp(&self) -> bool {
        self.name() == "tcp"
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
