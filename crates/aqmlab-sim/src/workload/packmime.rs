//! Web traffic of many clients and servers: PackMime-HTTP.
//!
//! Connections arrive as a fractional sum-difference process (Weibull gaps with long memory, closer
//! to Poisson at higher rates). 9 % of them are persistent and carry several pages of several
//! objects; the others carry one request. Runs of cache validations (responses below 275 bytes)
//! alternate with runs of downloads (a body and a Pareto tail of shape 1.23).
//!
//! Recorded are the times of `requests`: `response`, `startup`, `completion`.
//!
//! # Sources
//! Cao, Cleveland, Gao, Jeffay, Smith and Weigle, Stochastic models for generating synthetic HTTP
//! source traffic (INFOCOM 2004), with the numbers of the authors' own generator in ns-2.35,
//! compared one by one with a public copy (packmime/packmime_ranvar.cc, packmime/packmime_HTTP.cc,
//! and logitinv in tools/rng.h, which uses base 2); the paper itself was not available. The means
//! returned by `avg()` in that code (423 and 2272 bytes) are not those of its own curves: they are
//! near the medians of requests and of downloads.
//!
//! # Differences
//! 1. The inverse distributions of sizes have about 26 points instead of ns-2's 100; between the
//!    points they differ by less than 2 %.
//! 2. Long memory is a moving average over 1000 terms; ns-2 uses an autoregression over 1000 (gaps)
//!    and 5000 (requests).
//! 3. Location and scale of the gaps between requests are drawn for each connection, like those of
//!    response sizes; ns-2 draws those of the gaps once per run.
//! 4. Delay and loss are those of the links, not DelayBox's.

use aqmlab_core::distribution::{gamma, quantile};
use aqmlab_core::{Component, Span, Stream, params};

use super::Workload;
use super::requests::{Exchange, Script, Session};
use crate::workload::app::{App, Context};

mod tables;

use tables::{REQUEST_BODY, REQUEST_TAIL, RESPONSE_CACHED, RESPONSE_LOADED};

params! {
    /// Web traffic modelled by PackMime-HTTP.
    pub struct PackMimeParams {
        /// New connections per second.
        rate: f64 = 5.0, in 0.01 => 100_000.0, source "Cao et al. 2004, rate";
        /// Share of persistent connections (HTTP/1.1); 0: HTTP/1.0.
        persistent: f64 = 0.09, in 0.0 => 1.0, source "ns-2.35, P_PERSISTENT";
    }
}

impl Component for PackMimeParams {
    const NAME: &'static str = "packmime";
    const SUMMARY: &'static str = "Web traffic of many clients and servers, after PackMime-HTTP";
}

impl Workload for PackMimeParams {
    fn app(&self, streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>> {
        Some(Box::new(PackMime {
            gaps: Gaps::new(self.rate, streams("gap")),
            requests: Requests::new(self.rate, streams("request")),
            responses: Responses::new(self.rate, streams("response")),
            kinds: streams("persistent"),
            persistent: self.persistent,
        }))
    }
}

/// Logistic growth, base 2, with the logarithm of the rate.
fn logistic(intercept: f64, slope: f64, rate: f64) -> f64 {
    1.0 / (1.0 + libm::exp2(-(intercept + slope * libm::log2(rate))))
}

/// The upper tail of the standard normal.
fn above(z: f64) -> f64 {
    0.5 * libm::erfc(z / std::f64::consts::SQRT_2)
}

/// Gaussian sequence of mean 0 and variance 1: white noise plus the sum of neighbours of fractional
/// noise.
#[derive(Clone)]
struct FractionalSum {
    weights: Vec<f64>,
    noise: Vec<f64>,
    next: usize,
    white: f64,
    stream: Stream,
}

const TERMS: usize = 1000;

impl FractionalSum {
    /// `d` is the order of the fractional difference, `white` the share of
    /// white noise in the variance.
    fn new(d: f64, white: f64, mut stream: Stream) -> Self {
        let mut weights = vec![1.0; TERMS];
        for j in 1..TERMS {
            weights[j] = weights[j - 1] * (j as f64 - 1.0 + d) / j as f64;
        }
        for j in (1..TERMS).rev() {
            weights[j] += weights[j - 1];
        }
        let norm = libm::sqrt(weights.iter().map(|weight| weight * weight).sum());
        weights.iter_mut().for_each(|weight| *weight /= norm);
        let noise = (0..TERMS).map(|_| stream.normal()).collect();
        FractionalSum { weights, noise, next: 0, white, stream }
    }

    fn draw(&mut self) -> f64 {
        self.noise[self.next] = self.stream.normal();
        // The newest term has the first weight.
        let (new, old) = self.noise.split_at(self.next + 1);
        let newest_first = new.iter().rev().chain(old.iter().rev());
        let sum: f64 = newest_first.zip(&self.weights).map(|(noise, weight)| noise * weight).sum();
        self.next = (self.next + 1) % TERMS;
        libm::sqrt(1.0 - self.white) * sum + libm::sqrt(self.white) * self.stream.normal()
    }
}

/// Times between connections, in seconds.
#[derive(Clone)]
struct Gaps {
    sequence: FractionalSum,
    shape: f64,
    scale: f64,
}

impl Gaps {
    fn new(rate: f64, stream: Stream) -> Self {
        let shape = logistic(0.352, 0.388, rate);
        Gaps {
            sequence: FractionalSum::new(0.33, logistic(0.333, 0.414, rate), stream),
            shape,
            scale: 1.0 / (rate * libm::tgamma(1.0 + 1.0 / shape)),
        }
    }
    fn draw(&mut self) -> f64 {
        let tail = above(self.sequence.draw());
        self.scale * libm::pow(-libm::log(tail), 1.0 / self.shape)
    }
}

/// Sizes of requests; the median is 422 bytes.
#[derive(Clone)]
struct Requests(FractionalSum);

impl Requests {
    fn new(rate: f64, stream: Stream) -> Self {
        Requests(FractionalSum::new(0.31, logistic(0.123, 0.494, rate), stream))
    }
    fn draw(&mut self) -> u64 {
        let tail = above(self.0.draw());
        let size = match tail >= 0.5 {
            true => quantile(REQUEST_BODY, (1.0 - tail) * 2.0),
            false => libm::exp2(interpolate(REQUEST_TAIL, libm::log2(tail * 2.0))),
        };
        (size as u64).max(1)
    }
}

/// Sizes of the first responses of all connections.
#[derive(Clone)]
struct Responses {
    /// Shapes of runs of validations and of downloads.
    shapes: [f64; 2],
    is_download: bool,
    left: u64,
    stream: Stream,
}

const RUN_SCALES: [f64; 2] = [0.775, 3.11];

impl Responses {
    fn new(rate: f64, stream: Stream) -> Self {
        let shapes = [logistic(0.718, 0.357, rate), logistic(1.293, 0.316, rate)];
        Responses { shapes, is_download: false, left: 0, stream }
    }
    fn draw(&mut self) -> u64 {
        if self.left == 0 {
            self.is_download = !self.is_download;
            let kind = usize::from(self.is_download);
            let run = weibull(&mut self.stream, self.shapes[kind], RUN_SCALES[kind]);
            self.left = libm::ceil(run).max(1.0) as u64;
        }
        self.left -= 1;
        let p = self.stream.uniform();
        let size = match self.is_download {
            true => libm::exp2(interpolate(RESPONSE_LOADED, libm::log2(1.0 - p))),
            false => quantile(RESPONSE_CACHED, p),
        };
        (size as u64).max(1)
    }
}

/// Interpolates linearly between points with rising first numbers, and extrapolates beyond them.
fn interpolate(points: &[(f64, f64)], x: f64) -> f64 {
    let right = points.partition_point(|(at, _)| *at <= x).clamp(1, points.len() - 1);
    let [(x0, y0), (x1, y1)] = [points[right - 1], points[right]];
    y0 + (y1 - y0) * (x - x0) / (x1 - x0)
}

fn weibull(stream: &mut Stream, shape: f64, scale: f64) -> f64 {
    scale * libm::pow(stream.exponential(1.0), 1.0 / shape)
}

/// Binary logarithms of a quantity of a connection, with a location and a scale drawn once per
/// connection.
#[derive(Clone)]
struct Effects {
    location: f64,
    deviation: f64,
}

impl Effects {
    fn new(stream: &mut Stream, mean: f64, variance: f64, shape: f64, error: f64) -> Self {
        let location = mean + stream.normal() * libm::sqrt(variance);
        let scale = gamma(stream, shape) / shape;
        Effects { location, deviation: libm::sqrt(scale * error) }
    }
    fn draw(&self, stream: &mut Stream) -> f64 {
        libm::exp2(self.location + self.deviation * stream.normal())
    }
}

/// Clients: they open a connection after each gap.
#[derive(Clone)]
struct PackMime {
    gaps: Gaps,
    requests: Requests,
    responses: Responses,
    kinds: Stream,
    persistent: f64,
}

impl App for PackMime {
    fn start(&mut self, cx: &mut Context) {
        self.on_timer(cx);
    }
    fn on_timer(&mut self, cx: &mut Context) {
        let (request, response) = (self.requests.draw(), self.responses.draw());
        let is_persistent = self.kinds.uniform() < self.persistent;
        cx.spawn(|streams| {
            let stream = streams("session");
            let script = WebConnection::new(is_persistent, request, response, stream);
            Box::new(Session::of(script, 1, true))
        });
        cx.wake_after(Span::from_secs_f64(self.gaps.draw()));
    }
}

/// Requests over one connection.
#[derive(Clone)]
struct WebConnection {
    request: u64,
    first_response: u64,
    /// Objects of each remaining page; the last page first.
    pages: Vec<u64>,
    is_first: bool,
    begins_page: bool,
    sizes: Effects,
    between_pages: Effects,
    between_objects: Effects,
    stream: Stream,
}

/// Responses below this size are cache validations.
const CACHE_CUTOFF: u64 = 275;

impl WebConnection {
    fn new(is_persistent: bool, request: u64, first_response: u64, mut stream: Stream) -> Self {
        let pages = match is_persistent {
            true => pages(&mut stream),
            false => vec![1],
        };
        WebConnection {
            request,
            first_response,
            pages,
            is_first: true,
            begins_page: true,
            sizes: Effects::new(&mut stream, 10.62, 0.94, 3.22, 2.43),
            between_pages: Effects::new(&mut stream, 3.22, 0.73, 1.85, 1.21),
            between_objects: Effects::new(&mut stream, -4.15, 3.12, 2.35, 1.57),
            stream,
        }
    }
}

/// Draws the number of objects of each page of a persistent connection.
fn pages(stream: &mut Stream) -> Vec<u64> {
    let number = match stream.uniform() < 0.82 {
        true => 1,
        false => libm::ceil(1.0 + stream.exponential(0.417)).max(2.0) as usize,
    };
    let objects = |stream: &mut Stream| {
        if number > 1 && stream.uniform() < 0.69 {
            return 1;
        }
        libm::ceil(1.0 + stream.exponential(1.578)).max(2.0) as u64
    };
    (0..number).map(|_| objects(stream)).collect()
}

impl Script for WebConnection {
    fn next(&mut self) -> Option<(Span, Exchange)> {
        let left = self.pages.last_mut()?;
        *left -= 1;
        let ends_page = *left == 0;
        if ends_page {
            self.pages.pop();
        }
        let gap = match (self.is_first, self.begins_page) {
            (true, _) => 0.0,
            (false, true) => self.between_pages.draw(&mut self.stream),
            (false, false) => self.between_objects.draw(&mut self.stream),
        };
        let response = match self.is_first || self.first_response <= CACHE_CUTOFF {
            true => self.first_response,
            false => (self.sizes.draw(&mut self.stream) as u64).max(1),
        };
        (self.is_first, self.begins_page) = (false, ends_page);
        // Inverse of a Weibull variable, at most 0.1 s.
        let delay = 1.0 / weibull(&mut self.stream, 0.63, 305.0).max(10.0);
        let server_delay = Span::from_secs_f64(delay);
        Some((Span::from_secs_f64(gap), Exchange { request: self.request, response, server_delay }))
    }
}

#[cfg(test)]
mod tests;
