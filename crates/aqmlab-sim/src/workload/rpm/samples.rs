//! Times of probes, and the resulting responsiveness.

use std::collections::VecDeque;

use aqmlab_core::{Span, Time};

use crate::workload::app::Context;

/// Quantities measured by probes; the first three belong to foreign ones.
const KINDS: [&str; 4] = ["tcp_f", "tls_f", "http_f", "http_l"];

/// Times of probes, with their end times.
#[derive(Clone, Default)]
pub(super) struct Samples([VecDeque<(Time, Span)>; 4]);

/// Number of samples kept of each kind: more than any test has in its last intervals.
const KEPT: usize = 1 << 20;

impl Samples {
    /// Records the time of a completed probe.
    pub fn add(&mut self, kind: &'static str, time: Span, cx: &mut Context) {
        cx.activity().record(kind, time);
        let place = KINDS.iter().position(|known| *known == kind).expect("a kind of time");
        let times = &mut self.0[place];
        times.push_back((cx.now(), time));
        if times.len() > KEPT {
            times.pop_front();
        }
    }

    /// Returns the responsiveness, foreign and loaded, of the probes completed after `since`;
    /// `None` until all kinds are present.
    pub fn rpm(&self, since: Time, trim: f64, tls: bool) -> Option<[f64; 3]> {
        let means = [0, 1, 2, 3].map(|kind: usize| {
            let times = self.0[kind].iter().rev().take_while(|(over, _)| *over > since);
            trimmed_mean(times.map(|(_, time)| time.as_secs_f64()).collect(), trim)
        });
        let [tcp, tls_time, http, own] = means;
        let foreign = match tls {
            true => (tcp? + tls_time? + http?) / 3.0,
            false => (tcp? + http?) / 2.0,
        };
        let [foreign, loaded] = [60.0 / foreign, 60.0 / own?];
        Some([(foreign + loaded) / 2.0, foreign, loaded])
    }
}

/// Returns the mean of the shortest times: a share `trim` of all, at least one.
fn trimmed_mean(mut times: Vec<f64>, trim: f64) -> Option<f64> {
    if times.is_empty() {
        return None;
    }
    times.sort_unstable_by(f64::total_cmp);
    let kept = ((times.len() as f64 * trim) as usize).max(1);
    Some(times[..kept].iter().sum::<f64>() / kept as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_do_not_count() {
        let times: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(trimmed_mean(times.clone(), 0.95), Some(48.0));
        assert_eq!(trimmed_mean(times, 1.0), Some(50.5));
        assert_eq!(trimmed_mean(vec![3.0], 0.5), Some(3.0));
        assert_eq!(trimmed_mean(Vec::new(), 0.95), None);
    }

    /// 60000 divided by milliseconds; without TLS its time is not zero but absent.
    #[test]
    fn responsiveness_is_round_trips_a_minute() {
        let mut samples = Samples::default();
        let at = |secs: u64| Time::ZERO + Span::from_secs(secs);
        for (kind, millis) in [(0, 20), (1, 40), (2, 60), (3, 100)] {
            samples.0[kind].push_back((at(1), Span::from_millis(999)));
            samples.0[kind].push_back((at(5), Span::from_millis(millis)));
        }
        let [rpm, foreign, loaded] = samples.rpm(at(2), 0.95, true).unwrap();
        assert!((foreign - 1500.0).abs() < 1e-9 && (loaded - 600.0).abs() < 1e-9);
        assert!((rpm - 1050.0).abs() < 1e-9);
        assert_eq!(samples.rpm(at(2), 0.95, false).unwrap()[1], 1500.0);
        samples.0[1].clear();
        assert!(samples.rpm(at(2), 0.95, true).is_none());
        assert!(samples.rpm(at(2), 0.95, false).is_some());
    }
}
