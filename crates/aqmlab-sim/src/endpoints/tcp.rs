//! TCP endpoints: the sender, and the receiver that acknowledges.

use aqmlab_core::{Component, Time, params};
use aqmlab_tcp::{Sender, Stats};

use super::{BoxedEnds, EndpointParams, EndpointSetup, Source};

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

impl Source for Sender {
    fn open(&mut self, now: Time) {
        Sender::open(self, now);
    }
    fn supply(&mut self, bytes: u64) {
        self.write(bytes);
    }
    fn cut(&mut self) -> u64 {
        self.truncate_unsent()
    }
    fn sent(&self) -> u64 {
        self.sent_bytes()
    }
    fn is_finished(&self) -> bool {
        Sender::is_finished(self)
    }
    fn abort(&mut self) {
        Sender::abort(self);
    }
    fn stats(&self) -> Option<Stats> {
        Some(Sender::stats(self))
    }
}

/// Reports the state of a sender that recordings contain.
pub(super) fn observe(sender: &Sender, see: &mut dyn FnMut(&'static str, f64)) {
    see("cwnd_bytes", sender.cwnd() as f64);
    see("in_flight_bytes", sender.bytes_in_flight() as f64);
    if let Some(srtt) = sender.srtt() {
        see("smoothed_rtt_s", srtt.as_secs_f64());
    }
    sender.observe(see);
}
