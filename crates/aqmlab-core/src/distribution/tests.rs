//! Closed forms, and Kolmogorov and Smirnov's test with fixed seeds.

use proptest::prelude::*;

use super::*;
use crate::params::read_value;

const N: usize = 20_000;

fn of(text: &str) -> Distribution<f64> {
    Distribution::parse(&text.into()).unwrap()
}

fn sample(text: &str, seed: u64) -> Vec<f64> {
    let mut sampler = Sampler::new(&of(text), Stream::for_component(seed, 0, "distribution"));
    (0..N).map(|_| sampler.draw()).collect()
}

/// The largest distance between the distribution of a sample and `cdf`, times
/// the root of its size: above 1.63 it is 1 % likely (Kolmogorov).
fn distance(mut sample: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    sample.sort_unstable_by(f64::total_cmp);
    let n = sample.len() as f64;
    let gaps = sample.iter().enumerate().map(|(i, x)| {
        let share = cdf(*x);
        (share - i as f64 / n).max((i + 1) as f64 / n - share)
    });
    gaps.fold(0.0, f64::max) * n.sqrt()
}

#[test]
fn samples_follow_their_laws() {
    type Cdf = Box<dyn Fn(f64) -> f64>;
    let laws: Vec<(&str, Cdf)> = vec![
        ("uniform(2, 5)", Box::new(|x| (x - 2.0) / 3.0)),
        ("exponential(0.25)", Box::new(|x| 1.0 - libm::exp(-x / 0.25))),
        ("pareto(shape=1.5, scale=2)", Box::new(|x| 1.0 - libm::pow(2.0 / x, 1.5))),
        ("pareto(shape=1.2, mean=12)", Box::new(|x| 1.0 - libm::pow(2.0 / x, 1.2))),
        (
            "weibull(shape=0.63, scale=305)",
            Box::new(|x| 1.0 - libm::exp(-libm::pow(x / 305.0, 0.63))),
        ),
        (
            "lognormal(sigma=0.7, median=3)",
            Box::new(|x| 0.5 * libm::erfc(-libm::log(x / 3.0) / 0.7 / std::f64::consts::SQRT_2)),
        ),
        ("extreme(location=55, scale=6)", Box::new(|x| libm::exp(-libm::exp(-(x - 55.0) / 6.0)))),
        (
            "cdf(1:0, 3:0.5, 4:1)",
            Box::new(|x| if x < 3.0 { (x - 1.0) / 4.0 } else { 0.5 + (x - 3.0) / 2.0 }),
        ),
    ];
    for (text, cdf) in laws {
        for seed in 1..=3 {
            let distance = distance(sample(text, seed), &cdf);
            assert!(distance < 1.63, "{text}, seed {seed}: {distance}");
            // The test tells a law from one that is 20 % wider.
            let other = self::distance(sample(text, seed), |x| cdf(x / 1.2).clamp(0.0, 1.0));
            assert!(other > 1.63, "{text}, seed {seed}: {other}");
        }
    }
}

#[test]
fn means_are_those_of_the_closed_forms() {
    // The standard error of the last two is not small: their tails are long.
    for (text, mean, share) in [
        ("7", 7.0, 0.0),
        ("uniform(2, 5)", 3.5, 0.01),
        ("exponential(0.25)", 0.25, 0.03),
        ("weibull(shape=2, mean=10)", 10.0, 0.02),
        ("lognormal(sigma=0.5, mean=10)", 10.0, 0.02),
        ("cdf(2:0.5, 4:1)", 2.5, 0.01),
        ("extreme(location=55, scale=6)", 55.0 + 6.0 * 0.577_215_664_901_532_9, 0.005),
        ("list(1, 2, 6)", 3.0, 0.001),
        ("pareto(shape=3, mean=10)", 10.0, 0.03),
        ("weibull(shape=0.5, mean=10)", 10.0, 0.05),
    ] {
        assert!((of(text).mean() - mean).abs() < 1e-9 * mean, "{text}");
        let sample = sample(text, 1);
        let measured = sample.iter().sum::<f64>() / sample.len() as f64;
        assert!((measured - mean).abs() <= share * mean, "{text}: {measured}");
    }
}

/// E min(X, c) of a Pareto law is the integral of its tail up to c.
#[test]
fn a_cap_cuts() {
    let sample = sample("pareto(shape=1.5, scale=1, cap=10)", 1);
    let at_cap = sample.iter().filter(|x| **x == 10.0).count() as f64 / N as f64;
    assert!(sample.iter().all(|x| *x <= 10.0));
    assert!((at_cap - libm::pow(10.0, -1.5)).abs() < 0.003, "{at_cap}");
    let mean = sample.iter().sum::<f64>() / N as f64;
    let closed = 1.0 + 2.0 * (1.0 - libm::pow(10.0, -0.5));
    assert!((mean / closed - 1.0).abs() < 0.02, "{mean} {closed}");
}

/// Mean and variance of Gamma's law are its shape, the third central moment
/// twice that.
#[test]
fn gamma_has_its_moments() {
    for shape in [1.85, 3.22, 20.0] {
        let mut stream = Stream::for_component(1, 0, "gamma");
        let sample: Vec<f64> = (0..N).map(|_| gamma(&mut stream, shape)).collect();
        let moment = |power: f64, centre: f64| {
            sample.iter().map(|x| libm::pow(x - centre, power)).sum::<f64>() / N as f64
        };
        let mean = moment(1.0, 0.0);
        assert!((mean / shape - 1.0).abs() < 0.02, "{shape}: {mean}");
        assert!((moment(2.0, mean) / shape - 1.0).abs() < 0.05, "{shape}");
        assert!((moment(3.0, mean) / (2.0 * shape) - 1.0).abs() < 0.25, "{shape}");
    }
}

#[test]
fn a_list_is_taken_in_turn() {
    let listed = Distribution::<Span>::parse(&"list(1ms, 5ms)".into()).unwrap();
    let mut sampler = Sampler::new(&listed, Stream::from_state(1));
    let drawn: Vec<u64> = (0..4).map(|_| sampler.draw().as_nanos() / 1_000_000).collect();
    assert_eq!(drawn, [1, 5, 1, 5]);
}

fn table(pairs: &[(&str, Value)]) -> Value {
    Value::Table(pairs.iter().map(|(key, value)| (key.to_string(), value.clone())).collect())
}

#[test]
fn a_table_and_a_text_say_the_same() {
    let arguments =
        table(&[("shape", Value::Float(1.5)), ("mean", "10kb".into()), ("cap", "5mb".into())]);
    let read = |value: &Value| Distribution::<Bytes>::parse(value).unwrap();
    let by_table = read(&table(&[("pareto", arguments)]));
    assert_eq!(by_table, read(&"pareto(shape=1.5, mean=10kb, cap=5mb)".into()));
    let ends = Value::List(vec!["1kb".into(), "2kb".into()]);
    assert_eq!(read(&table(&[("uniform", ends)])), read(&"uniform(1024b, 2kb)".into()));
    let points = Value::List(vec![
        Value::List(vec!["1kb".into(), Value::Float(0.5)]),
        Value::List(vec!["2kb".into(), Value::Integer(1)]),
    ]);
    assert_eq!(read(&table(&[("cdf", points)])), read(&"cdf(1kb:0.5, 2kb:1)".into()));
}

#[test]
fn what_is_written_reads_back() {
    for text in [
        "5ms",
        "uniform(0s, 650ms)",
        "exponential(200ms)",
        "pareto(shape=1.5, mean=500ms, cap=1min)",
        "lognormal(sigma=0.5, median=1s)",
        "weibull(shape=2, scale=1s)",
        "extreme(location=55ms, scale=6ms, cap=1s)",
        "cdf(0s:0.25, 1s:1)",
        "list(0s, 1s, 2s)",
    ] {
        let read = read_value::<Distribution<Span>>(&text.into()).unwrap();
        let again = read_value::<Distribution<Span>>(&read.to_text().as_str().into()).unwrap();
        assert_eq!(again, read, "{text}");
    }
    // A scale of sizes need not be whole bytes.
    let size = read_value::<Distribution<Bytes>>(&"extreme(location=45b, scale=5.7b)".into());
    let size = size.unwrap();
    assert!((size.mean() - (45.0 + 5.7 * 0.577_215_664_901_532_9)).abs() < 1e-9);
    assert_eq!(size.to_text(), "extreme(location=45b, scale=5.7b)");
}

#[test]
fn what_is_no_distribution_is_refused() {
    for (text, problem) in [
        ("5", "a time with its unit"),
        ("paretto(shape=1, scale=1s)", "did you mean `pareto`?"),
        ("pareto(shape=1.5)", "either `mean` or `scale`"),
        ("pareto(shape=0.9, mean=1s)", "there is no mean"),
        ("pareto(shape=0, scale=1s)", "0.05 to 100"),
        ("pareto(shape=1.5, mean=0s)", "more than 0"),
        ("pareto(shape=1.5, mode=1s)", "mode"),
        ("uniform(2s, 1s)", "larger than the second"),
        ("uniform(2s)", "two values"),
        ("cdf(1s:0.5, 2s:0.4, 3s:1)", "rising"),
        ("cdf(1s:0.5)", "rising"),
        ("extreme(location=1s)", "`scale` is missing"),
        ("extreme(location=1s, scale=6)", "a time with its unit"),
        ("list()", "at least one value"),
    ] {
        let error = Distribution::<Span>::parse(&text.into()).unwrap_err().to_string();
        assert!(error.contains(problem), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "[a-z(),=:0-9. ]{0,40}") {
        let _ = Distribution::<Bytes>::parse(&text.as_str().into());
    }
}
