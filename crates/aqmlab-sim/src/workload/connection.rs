//! HTTP connection with both ends: TLS round trips, requests and responses, and load.

use crate::workload::agenda::Messages;
use crate::workload::app::{Context, Direction};

/// Bytes of a client's first flight in TLS: RFC 7685 pads it to 512, and the record header has five
/// (RFC 8446, section 5.1).
const HELLO: u64 = 517;
/// Bytes of a flight in later round trips: keys and Finished.
const FLIGHT: u64 = 100;

/// Event on a connection.
pub(in crate::workload) enum Arrival {
    /// The connection is open.
    Opened,
    /// A request for this object has arrived at the server.
    Request(u32),
    /// The first byte of an object has arrived.
    FirstByte(u32),
    /// The last byte of an object has arrived.
    Object(u32),
}

#[derive(Clone)]
enum ToServer {
    Hello,
    Request(u32),
}

#[derive(Clone)]
enum ToClient {
    Flight,
    FirstByte(u32),
    Object(u32),
}

#[derive(Clone)]
pub(in crate::workload) struct Connection {
    pub host: u32,
    /// Flow of the requests, which identifies the connection.
    pub to_server: u32,
    to_client: u32,
    /// Number of requests without a response.
    pub busy: usize,
    /// Number of remaining round trips of TLS.
    tls: u64,
    certificates: u64,
    /// Direction of the load, if any; other data is inserted into it.
    load: Option<Direction>,
    up: Messages<ToServer>,
    down: Messages<ToClient>,
}

impl Connection {
    pub fn open(
        host: u32,
        tls: u64,
        certificates: u64,
        is_transient: bool,
        cx: &mut Context,
    ) -> Self {
        let [to_server, to_client] = cx.connect(is_transient);
        let (up, down) = (Messages::default(), Messages::default());
        let (busy, load) = (0, None);
        let mut connection =
            Connection { host, to_server, to_client, busy, tls, certificates, load, up, down };
        if tls > 0 {
            connection.up.write(to_server, HELLO, [(HELLO, ToServer::Hello)], cx);
        }
        connection
    }

    pub fn has(&self, flow: u32) -> bool {
        flow == self.to_server || flow == self.to_client
    }

    /// Returns whether requests may be written. Without TLS, they may from the start: TCP buffers
    /// them until the connection is open.
    pub fn is_open(&self) -> bool {
        self.tls == 0
    }

    pub fn ask(&mut self, object: u32, request: u64, cx: &mut Context) {
        self.busy += 1;
        let (flow, message) = (self.to_server, ToServer::Request(object));
        match self.load {
            Some(Direction::Backward) => self.up.mark(flow, cx.sent(flow) + request, message, cx),
            _ => self.up.write(flow, request, [(request, message)], cx),
        }
    }

    pub fn answer(&mut self, object: u32, size: u64, cx: &mut Context) {
        let flow = self.to_client;
        let messages = [(1, ToClient::FirstByte(object)), (size, ToClient::Object(object))];
        match self.load {
            Some(Direction::Forward) => {
                let start = cx.sent(flow);
                messages
                    .into_iter()
                    .for_each(|(at, each)| self.down.mark(flow, start + at, each, cx));
            }
            _ => self.down.write(flow, size, messages, cx),
        }
    }

    /// Returns the next event of a flow; call until `None`.
    pub fn arrived(&mut self, flow: u32, cx: &mut Context) -> Option<Arrival> {
        if flow == self.to_server {
            return Some(match self.up.arrived(flow, cx)? {
                ToServer::Request(object) => Arrival::Request(object),
                ToServer::Hello => {
                    let flight = std::mem::replace(&mut self.certificates, FLIGHT);
                    let message = [(flight, ToClient::Flight)];
                    self.down.write(self.to_client, flight, message, cx);
                    return None;
                }
            });
        }
        Some(match self.down.arrived(flow, cx)? {
            ToClient::FirstByte(object) => Arrival::FirstByte(object),
            ToClient::Object(object) => {
                self.busy -= 1;
                Arrival::Object(object)
            }
            ToClient::Flight => {
                self.tls -= 1;
                if self.tls == 0 {
                    return Some(Arrival::Opened);
                }
                self.up.write(self.to_server, FLIGHT, [(FLIGHT, ToServer::Hello)], cx);
                return None;
            }
        })
    }

    /// Sends load from now on, to the client (`Forward`) or the server.
    pub fn fill(&mut self, direction: Direction, cx: &mut Context) {
        self.load = Some(direction);
        cx.fill(self.flow(direction));
    }

    pub fn is_filled(&self) -> bool {
        self.load.is_some()
    }

    /// Returns the bytes that have arrived in this direction, each counted once.
    pub fn carried(&self, direction: Direction, cx: &Context) -> u64 {
        cx.arrived(self.flow(direction))
    }

    fn flow(&self, direction: Direction) -> u32 {
        match direction {
            Direction::Forward => self.to_client,
            Direction::Backward => self.to_server,
        }
    }

    pub fn close(self, cx: &mut Context) {
        if let Some(direction) = self.load {
            cx.take_back(self.flow(direction));
        }
        cx.close(self.to_server);
        cx.close(self.to_client);
    }
}
