//! Delivery rates (`tcp_rate.c`).

use super::LinuxSender;
use super::rack::sent_after;
use super::segment_queue::tag;
use super::state::Rate;

impl LinuxSender {
    /// A segment was sent: how the connection stands.
    pub(super) fn rate_sent(&mut self, place: u64) {
        let state = &mut self.state;
        let segment = self.queue.at_mut(place);
        if state.packets_out == 0 {
            state.flight_began = segment.micros();
            state.delivered_at = segment.micros();
        }
        segment.flight_began = state.flight_began;
        segment.delivered_at = state.delivered_at;
        segment.delivered = state.delivered;
        segment.app_limited = state.app_limited != 0;
        segment.lost = state.lost as u32;
        segment.in_flight = state.in_flight() + 1;
    }

    /// A segment was delivered.
    #[inline]
    pub(super) fn rate_delivered(&mut self, place: u64, rate: &mut Rate) {
        let segment = self.queue.at_mut(place);
        if segment.delivered_at == 0 {
            return;
        }
        let state = &mut self.state;
        let sent = segment.micros();
        if rate.prior_delivered == 0
            || sent_after((sent, segment.end()), (state.flight_began, rate.last_end))
        {
            rate.prior_delivered = segment.delivered;
            rate.prior_at = segment.delivered_at;
            rate.app_limited = segment.app_limited;
            rate.prior_lost = segment.lost;
            rate.tx_in_flight = segment.in_flight;
            rate.last_end = segment.end();
            state.flight_began = sent;
            rate.interval = sent as i64 - segment.flight_began as i64;
        }
        if segment.has(tag::SACKED) {
            segment.delivered_at = 0;
        }
    }

    /// The sample of an acknowledgement.
    pub(super) fn measure_rate(
        &mut self,
        rate: &mut Rate,
        delivered: u32,
        lost: u32,
        reneging: bool,
    ) {
        let state = &mut self.state;
        if state.app_limited != 0 && state.delivered > state.app_limited {
            state.app_limited = 0;
        }
        if delivered > 0 {
            state.delivered_at = state.micros;
        }
        rate.acked_sacked = delivered;
        rate.losses = lost;
        if rate.prior_at == 0 || reneging {
            (rate.delivered, rate.interval) = (-1, -1);
            return;
        }
        rate.delivered = (state.delivered - rate.prior_delivered) as i64;
        rate.interval = rate.interval.max(state.micros as i64 - rate.prior_at as i64);
        if rate.interval < state.min_rtt() as i64 {
            rate.interval = -1;
        }
    }

    /// The application writes: it has been the limit if there was nothing to send.
    pub(super) fn check_app_limited(&mut self) {
        let state = &mut self.state;
        if state.written - state.nxt < u64::from(state.mss) {
            self.app_limited_if_idle();
        }
    }
    /// Does the same for data written before the connection is open.
    pub(super) fn check_app_limited_of_first(&mut self) {
        self.app_limited_if_idle();
    }
    fn app_limited_if_idle(&mut self) {
        let state = &mut self.state;
        if state.in_flight() < state.cwnd && state.lost_out <= state.retrans_out {
            state.app_limited = (state.delivered + u64::from(state.in_flight())).max(1);
        }
    }
}
