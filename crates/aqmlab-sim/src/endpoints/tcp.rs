//! TCP endpoints: the sender, and the receiver that acknowledges.

use aqmlab_core::{Component, Ecn, Time, params};
use aqmlab_tcp::{Ack, DataSegment, Receiver, Sender, Stats};

use super::{BoxedEnds, Endpoint, EndpointParams, EndpointSetup, Incoming, Outgoing, Sink, Source};

params! {
    /// Empty: the parameters of TCP are in `transport`.
    pub struct TcpParams {
    }
}

impl Component for TcpParams {
    const NAME: &'static str = "tcp";
    const SUMMARY: &'static str = "TCP, as `transport` says";
}

impl EndpointParams for TcpParams {
    fn build(&self, _setup: &EndpointSetup) -> BoxedEnds {
        unreachable!("a flow holds the ends of a TCP connection in place")
    }
}

/// Sender of data.
#[derive(Clone)]
pub struct TcpSource {
    /// Sender's state machine.
    pub sender: Sender,
    header: u32,
}

/// Receiver, which acknowledges data.
#[derive(Clone)]
pub struct TcpSink {
    /// Receiver's state machine.
    pub receiver: Receiver,
    header: u32,
}

impl TcpSource {
    /// Creates the sender of a connection with `size` bytes; `None`: no end. `seed` is for the
    /// random draws of its control.
    pub fn new(params: &aqmlab_tcp::TcpParams, size: Option<u64>, seed: u64) -> Self {
        let header = params.header.get() as u32;
        TcpSource { sender: Sender::new(params, size, seed), header }
    }
}

impl TcpSink {
    /// Creates the receiver of a connection.
    pub fn new(params: &aqmlab_tcp::TcpParams) -> Self {
        let header = params.header.get() as u32;
        TcpSink { receiver: Receiver::new(params), header }
    }
}

impl Endpoint<DataSegment, Ack> for TcpSource {
    #[inline(always)]
    fn poll(&mut self, now: Time) -> Option<Outgoing<DataSegment>> {
        let segment = self.sender.poll(now)?;
        let (size, ecn) = (self.header + segment.len, segment.ecn);
        Some(Outgoing { payload: segment, size, ecn })
    }
    #[inline(always)]
    fn on_packet(&mut self, now: Time, packet: Incoming<Ack>) {
        self.sender.on_ack(now, &packet.payload);
    }
    #[inline]
    fn deadline(&self) -> Option<Time> {
        self.sender.next_timeout()
    }
    #[inline]
    fn on_deadline(&mut self, now: Time) {
        self.sender.on_timeout(now);
    }
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("cwnd_bytes", self.sender.cwnd() as f64);
        see("in_flight_bytes", self.sender.bytes_in_flight() as f64);
        if let Some(srtt) = self.sender.srtt() {
            see("smoothed_rtt_s", srtt.as_secs_f64());
        }
        self.sender.observe(see);
    }
}

impl Source for TcpSource {
    fn open(&mut self, now: Time) {
        self.sender.open(now);
    }
    fn supply(&mut self, bytes: u64) {
        self.sender.write(bytes);
    }
    fn cut(&mut self) -> u64 {
        self.sender.truncate_unsent()
    }
    fn sent(&self) -> u64 {
        self.sender.sent_bytes()
    }
    #[inline]
    fn is_finished(&self) -> bool {
        self.sender.is_finished()
    }
    fn abort(&mut self) {
        self.sender.abort();
    }
    fn stats(&self) -> Option<Stats> {
        Some(self.sender.stats())
    }
}

impl Endpoint<Ack, DataSegment> for TcpSink {
    #[inline(always)]
    fn poll(&mut self, now: Time) -> Option<Outgoing<Ack>> {
        let ack = self.receiver.poll(now)?;
        let size = self.header + ack.sack.option_bytes();
        Some(Outgoing { payload: ack, size, ecn: Ecn::NotEct })
    }
    #[inline(always)]
    fn on_packet(&mut self, now: Time, packet: Incoming<DataSegment>) {
        self.receiver.on_segment(now, &packet.payload);
    }
    #[inline]
    fn deadline(&self) -> Option<Time> {
        self.receiver.next_timeout()
    }
    #[inline]
    fn on_deadline(&mut self, now: Time) {
        self.receiver.on_timeout(now);
    }
}

impl Sink for TcpSink {
    #[inline]
    fn received(&self) -> u64 {
        self.receiver.received()
    }
    fn arrived(&self) -> u64 {
        self.receiver.arrived()
    }
}
