//! Acknowledgements as reported to controls that are not the kernel's
//! ([`External`](super::control::external)).

use aqmlab_core::Span;

use super::LinuxSender;
use super::acks::{Sacked, flag};
use super::control::Algorithm;
use super::state::Rate;
use crate::congestion::{AckSample, RateSample};
use crate::segment::{Ack, CeCount};

/// An acknowledgement and the connection before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    sample: AckSample,
    prior_una: u64,
    prior_delivered: u64,
    prior_sacked: u32,
}

impl Report {
    /// Adds the marks that the acknowledgement reports.
    pub fn mark(&mut self, ece: bool, marked: CeCount) {
        self.sample.ece = ece;
        (self.sample.ce_packets, self.sample.ce_bytes) = (marked.packets, marked.bytes);
    }
}

impl LinuxSender {
    #[cold]
    #[inline(never)]
    pub(super) fn begin_report(&self, ack: &Ack) -> Report {
        let state = &self.state;
        let sample = AckSample {
            now: state.now,
            prior_in_flight: u64::from(state.packets_out) * u64::from(state.mss),
            in_recovery: state.in_reduction(),
            in_loss: state.ca_state == super::state::CaState::Loss,
            // The kernel stamps a paced segment with its departure time (`tcp_wstamp_ns`), which may lie
            // ahead of the time at which it is handed over.
            one_way_delay: ack.timestamps.map(|times| times.value.saturating_since(times.echo)),
            ..AckSample::default()
        };
        Report {
            sample,
            prior_una: state.una,
            prior_delivered: state.delivered,
            prior_sacked: state.sacked_out,
        }
    }

    /// Before the congestion machine: for controls whose windows the kernel reduces.
    #[cold]
    #[inline(never)]
    pub(super) fn report_before(&mut self, report: &mut Report, sacked: &Sacked, rate: &Rate) {
        if !self.control.recovers_by_itself() {
            self.report(report, sacked, rate);
        }
    }

    /// At the end of an acknowledgement: the window (`tcp_cong_control`).
    #[cold]
    #[inline(never)]
    pub(super) fn control_external(
        &mut self,
        mut report: Report,
        sacked: &Sacked,
        rate: &Rate,
        flags: u32,
    ) {
        let recovers = self.control.recovers_by_itself();
        if recovers {
            self.report(&mut report, sacked, rate);
        }
        if !recovers && self.state.in_reduction() {
            let delivered = self.state.delivered - report.prior_delivered;
            self.reduce(delivered as u32, rate.losses, flags);
        } else if flags & flag::PROGRESS != 0 {
            self.state.cwnd_stamp = self.state.jiffies;
        }
        self.settle_control();
    }

    fn report(&mut self, report: &mut Report, sacked: &Sacked, rate: &Rate) {
        let (rate_sample, state) = (self.rate_sample(rate), &self.state);
        let mss = u64::from(state.mss);
        let segments = state.delivered - report.prior_delivered;
        let acked = state.una - report.prior_una;
        let sample = &mut report.sample;
        if acked == 0 && segments == 0 && !sample.ece {
            return;
        }
        sample.acked = acked;
        sample.sacked = u64::from(sacked.delivered) * mss;
        // Without SACK the exact number of bytes is known.
        let in_order = report.prior_sacked == 0 && sacked.delivered == 0 && acked > 0;
        sample.delivered = if in_order { acked } else { segments * mss };
        sample.total_delivered = state.delivered * mss;
        sample.total_lost = state.lost * mss;
        sample.in_flight = u64::from(state.in_flight()) * mss;
        sample.rtt = u64::try_from(rate.rtt).ok().map(Span::from_micros);
        sample.smoothed_rtt = state.srtt();
        sample.window_limited = state.is_cwnd_limited();
        sample.rate = rate_sample;
        if let Some(external) = self.control.as_external() {
            external.on_ack(&self.state, sample, rate.prior_delivered);
        }
    }

    fn rate_sample(&self, rate: &Rate) -> Option<RateSample> {
        let state = &self.state;
        if rate.prior_at == 0 || rate.interval < 0 {
            return None;
        }
        let interval = (rate.interval as u64).max(state.micros - rate.prior_at);
        if interval == 0 || interval < state.min_rtt() {
            return None;
        }
        let mss = u64::from(state.mss);
        let lost = (state.lost as u32).wrapping_sub(rate.prior_lost);
        Some(RateSample {
            delivered: (state.delivered - rate.prior_delivered) * mss,
            interval: Span::from_micros(interval),
            app_limited: rate.app_limited,
            prior_delivered: rate.prior_delivered * mss,
            lost: u64::from(lost) * mss,
            tx_in_flight: u64::from(rate.tx_in_flight) * mss,
            rtt: Span::from_micros(state.micros.saturating_sub(state.flight_began)),
        })
    }

    /// Reports pending congestion and takes the control's answers.
    pub(super) fn settle_control(&mut self) {
        let Some(external) = self.control.as_external() else { return };
        external.report_pending();
        external.apply(&mut self.state);
        if !external.has_rate() {
            self.state.update_pacing_rate();
        }
    }
}
