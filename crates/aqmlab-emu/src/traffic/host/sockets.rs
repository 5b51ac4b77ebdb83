//! Sockets of the applications: connecting, accepting, reading and writing.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;

use aqmlab_core::Time;
use aqmlab_sim::endpoints::datagrams::Sent;
use aqmlab_sim::endpoints::{Direction, Dscp};

use super::{
    Apps, CHUNK, CLIENT, Carrier, DATAGRAMS, HEADERS, HostConnection, SERVER, TURN, UNSENT,
};
use crate::sys::epoll::token;
use crate::sys::socket::{begin_connection_as, set_traffic_class};
use crate::sys::tcp::{set_control, set_unsent};
use crate::traffic::play::End;

/// Data to write.
static ZEROS: [u8; CHUNK] = [0; CHUNK];

impl Apps {
    /// Begins a connection from an end of the group. Returns its number.
    fn begin_connection(&mut self, opener: End, class: u8) -> io::Result<usize> {
        let to = if opener == End::Sender { End::Receiver } else { End::Sender };
        self.stage.enter(self.group, opener)?;
        let address = SocketAddr::V4(self.stage.address(self.group, to));
        let control = &self.stage.controls[self.group];
        let client = begin_connection_as(&address, |socket| {
            set_control(socket, control)?;
            set_traffic_class(socket, false, class)
        })?;
        client.set_nodelay(true)?;
        let number = self.connections.len();
        self.epoll.add(client.as_fd(), token(CLIENT, number as u32))?;
        let port = client.local_addr()?.port();
        self.unaccepted.insert((opener == End::Sender, port), number);
        let client = Some(Arc::new(client));
        let (flows, ended) = ([None, None], [false, false]);
        let (server, is_connected) = (None, false);
        self.connections.push(HostConnection { client, server, is_connected, flows, ended, class });
        Ok(number)
    }

    pub(super) fn failed(&self, error: &io::Error) {
        if !self.stage.is_over() {
            self.stage.stats().failures.push(error.to_string());
        }
    }

    /// Creates the statistics of a flow that this socket writes.
    fn open_row(&mut self, flow: u32, socket: &Arc<TcpStream>) {
        let state = &mut self.flows[flow as usize];
        let (direction, start, size) = (state.direction, state.start, state.size);
        let socket = Arc::clone(socket);
        let row = self.stage.stats().open(self.group, direction, start, size, socket);
        state.row = Some(row);
    }

    /// Limits unsent data of a client's flow in the kernel, so that the rest can be discarded. A
    /// transfer of known size is written in larger pieces.
    pub(super) fn keep_unsent(&self, flow: u32) {
        let Carrier::Stream(number, true) = self.flows[flow as usize].carrier else { return };
        let client = self.connections.get(number).and_then(|each| each.client.as_ref());
        if let Some(Err(error)) = client.map(|client| set_unsent(client, UNSENT)) {
            self.failed(&error);
        }
    }

    /// Accepts connections opened from the other end.
    pub(super) fn accept(&mut self, end: usize) -> io::Result<()> {
        loop {
            let (stream, from) = match self.listeners[end].accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            // The receiver's listener accepts connections opened by the sender.
            let is_sender = end == End::Receiver as usize;
            let Some(number) = self.unaccepted.remove(&(is_sender, from.port())) else { continue };
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            set_unsent(&stream, UNSENT)?;
            set_traffic_class(&stream, false, self.connections[number].class)?;
            self.epoll.add(stream.as_fd(), token(SERVER, number as u32))?;
            let stream = Arc::new(stream);
            self.connections[number].server = Some(Arc::clone(&stream));
            if let Some(flow) = self.connections[number].flows[1] {
                self.open_row(flow, &stream);
            }
            self.server(number);
        }
    }

    /// Handles an event of the client's socket.
    pub(super) fn client(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        let Some(client) = connection.client.clone() else { return };
        if !connection.is_connected {
            match client.take_error() {
                Ok(None) if client.peer_addr().is_ok() => {}
                Ok(Some(error)) | Err(error) => return self.failed(&error),
                Ok(None) => return,
            }
            connection.is_connected = true;
            if let Some(flow) = connection.flows[0] {
                let state = &self.flows[flow as usize];
                let (app, tells, took) = (state.app, state.tells, self.now - state.start);
                if !state.is_open && tells {
                    self.activity.record("startup", took);
                }
                if let Some(app) = app.filter(|_| tells) {
                    self.tell(app, |app, cx| app.on_connected(flow, cx));
                }
            }
        }
        self.connections[number].flows[0].into_iter().for_each(|flow| self.pump(flow));
        self.read(number, 0, &client);
    }

    /// Handles an event of the server's socket.
    pub(super) fn server(&mut self, number: usize) {
        let Some(socket) = self.connections[number].server.clone() else { return };
        self.connections[number].flows[1].into_iter().for_each(|flow| self.pump(flow));
        self.read(number, 1, &socket);
    }

    /// Writes pending data of a flow, as far as the kernel accepts it.
    pub(super) fn pump(&mut self, number: u32) {
        let flow = &mut self.flows[number as usize];
        let Carrier::Stream(carrier, by_client) = flow.carrier else { return };
        let connection = &self.connections[carrier];
        let socket = match by_client {
            true => connection.client.as_ref().filter(|_| connection.is_connected),
            false => connection.server.as_ref(),
        };
        let Some(socket) = socket else { return };
        let mut turn = 0..TURN;
        while flow.written < flow.goal {
            if turn.next().is_none() {
                return self
                    .again
                    .push(token(if by_client { CLIENT } else { SERVER }, carrier as u32));
            }
            let most = (CHUNK as u64).min(flow.goal - flow.written) as usize;
            match (&**socket).write(&ZEROS[..most]) {
                Ok(written) => flow.written += written as u64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => return self.failed(&error),
            }
        }
        if !flow.is_open {
            // A repeated call is harmless.
            let _ = socket.shutdown(Shutdown::Write);
        }
    }

    /// Ends the reading of one side: the client (0) or the server (1).
    fn end_side(&mut self, number: usize, side: usize, socket: &TcpStream) {
        let connection = &mut self.connections[number];
        connection.ended[side] = true;
        let finished = match (connection.flows[side], connection.flows[1 - side]) {
            (Some(_), Some(read)) => Some(read),
            // With data in one direction, the reader closes its side when it has all data; the
            // writer sees this after everything is acknowledged.
            (written, _) => written,
        };
        if connection.flows[side].is_none() {
            let _ = socket.shutdown(Shutdown::Write);
        }
        if connection.ended == [true, true] {
            (connection.client, connection.server) = (None, None);
        }
        let Some(flow) = finished.map(|flow| &mut self.flows[flow as usize]) else { return };
        if let Some(row) = flow.row.take() {
            let now = self.stage.now();
            self.stage.stats().finished(row, now);
        }
        if flow.app.is_none() {
            self.stage.member_done(self.group);
        }
    }

    /// Reads arrived data at one side of a connection: the other side's flow.
    fn read(&mut self, number: usize, side: usize, socket: &TcpStream) {
        let flow = self.connections[number].flows[1 - side];
        for _ in 0..TURN {
            match { socket }.read(&mut self.room) {
                Ok(0) => return self.end_side(number, side, socket),
                Ok(size) => {
                    self.look();
                    let Some(number) = flow else { continue };
                    let flow = &mut self.flows[number as usize];
                    flow.received += size as u64;
                    if flow.is_awaited && flow.received >= flow.expects {
                        self.hear(number);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => return self.failed(&error),
            }
        }
        self.again.push(token(if side == 0 { CLIENT } else { SERVER }, number as u32));
    }

    /// Reads datagrams that arrived at an end.
    pub(super) fn receive(&mut self, end: usize) {
        for _ in 0..TURN {
            let Ok(size) = self.receivers[end].recv(&mut self.room) else { return };
            let now = self.look();
            let word = |at: usize| {
                let bytes = self.room.get(at..at + 8).filter(|_| at + 8 <= size)?;
                Some(u64::from_le_bytes(bytes.try_into().ok()?))
            };
            let (Some(numbers), Some(sent)) = (word(0), word(8)) else { continue };
            let (number, serial) = (numbers & u64::from(u32::MAX), (numbers >> 32) as u32);
            let sent = Time::from_nanos(sent);
            let Some(flow) = self.flows.get(number as usize) else { continue };
            let (row, app, tells, direction) = (flow.row, flow.app, flow.tells, flow.direction);
            let Some(row) = row else { continue };
            let (wire, stamp) = (size as u32 + HEADERS, Sent { at: sent, number: serial });
            if !self.stage.stats().datagram_arrived(row, wire, now, stamp) {
                continue; // Duplicate.
            }
            self.activity.record_delay(direction, now.saturating_since(sent));
            if let Some(app) = app.filter(|_| tells) {
                self.tell(app, |app, cx| app.on_datagram(number as u32, sent, cx));
            }
        }
        self.again.push(token(DATAGRAMS, end as u32));
    }

    /// Opens a connection whose client writes. Returns the flow number.
    pub(super) fn connection(
        &mut self,
        app: Option<u32>,
        opener: End,
        size: Option<u64>,
        class: Option<Dscp>,
    ) -> u32 {
        let number = self.connections.len();
        let direction = match opener {
            End::Sender => Direction::Forward,
            End::Receiver => Direction::Backward,
        };
        let flow = self.add_flow(app, size, Carrier::Stream(number, true), direction);
        let class = self.class_of(class);
        match self.begin_connection(opener, class) {
            Ok(number) => {
                self.connections[number].flows[0] = Some(flow);
                let client = self.connections[number].client.clone();
                client.iter().for_each(|client| self.open_row(flow, client));
                if size.is_none() {
                    self.keep_unsent(flow);
                }
            }
            Err(error) => {
                self.flows[flow as usize].carrier = Carrier::Socket(usize::MAX);
                self.failed(&error);
            }
        }
        flow
    }
}
