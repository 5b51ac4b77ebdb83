//! stub
use aqmlab_core::*;
#[derive(Clone, Copy, Debug, Default)]
pub struct DataSegment {
    pub seq: u64,
    pub len: u32,
    pub syn: bool,
    pub retransmission: bool,
}
#[derive(Clone, Copy, Debug, Default)]
pub struct SackBlocks;
impl SackBlocks {
    pub fn is_empty(&self) -> bool {
        true
    }
}
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack {
    pub ack: u64,
    pub syn: bool,
    pub window: u64,
    pub sack: SackBlocks,
}
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    pub segments_sent: u64,
    pub retransmissions: u64,
    pub timeouts: u64,
    pub fast_retransmits: u64,
    pub bytes_acked: u64,
}
params! {
/// x
pub struct TcpParams {
/// x
 mss: Bytes = Bytes::new(1460), source "x";
/// x
 header: Bytes = Bytes::new(40), source "x";
/// x
 sack: bool = true, source "x";
} }
impl TcpParams {
    pub fn check(&self) -> Result<()> {
        Ok(())
    }
}
pub struct Sender;
pub struct Receiver;
impl Sender {
    pub fn new(_: &TcpParams, _: Option<u64>) -> Self {
        Sender
    }
    pub fn open(&mut self, _: Time) {}
    pub fn on_ack(&mut self, _: Time, _: &Ack) {}
    pub fn on_timeout(&mut self, _: Time) {}
    pub fn next_timeout(&self) -> Option<Time> {
        None
    }
    pub fn poll(&mut self, _: Time) -> Option<DataSegment> {
        None
    }
    pub fn is_finished(&self) -> bool {
        true
    }
    pub fn cwnd(&self) -> u64 {
        0
    }
    pub fn bytes_in_flight(&self) -> u64 {
        0
    }
    pub fn srtt(&self) -> Option<Span> {
        None
    }
    pub fn stats(&self) -> Stats {
        Stats::default()
    }
}
impl Receiver {
    pub fn new(_: &TcpParams) -> Self {
        Receiver
    }
    pub fn window(&self) -> u64 {
        0
    }
    pub fn on_segment(&mut self, _: Time, _: &DataSegment) {}
    pub fn poll(&mut self, _: Time) -> Option<Ack> {
        None
    }
    pub fn next_timeout(&self) -> Option<Time> {
        None
    }
    pub fn on_timeout(&mut self, _: Time) {}
}
