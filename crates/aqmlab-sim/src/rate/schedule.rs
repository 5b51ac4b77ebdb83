//! Schedules: rates or delays that are constant until the next step.

use std::sync::Arc;

use aqmlab_core::{Error, ParamType, Result, Span, Time, Value};

/// Times and values as written in a scenario.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Steps<T>(pub Vec<(Span, T)>);

/// Written as a list of pairs; its text form is `0s 100mbit, 50s 10mbit`.
impl<T: ParamType> ParamType for Steps<T> {
    const KIND: &'static str = "steps";
    fn allowed() -> String {
        format!("a list of steps, each [\"TIME\", \"VALUE\"] with {}", T::allowed())
    }
    fn read(value: &Value) -> Option<Self> {
        let read = |time: &Value, value: &Value| Some((Span::read(time)?, T::read(value)?));
        let steps = match value {
            Value::List(items) => items
                .iter()
                .map(|item| match item {
                    Value::List(pair) if pair.len() == 2 => read(&pair[0], &pair[1]),
                    _ => None,
                })
                .collect(),
            Value::Text(text) => text
                .split(',')
                .map(|item| {
                    let (time, value) = item.trim().split_once(' ')?;
                    read(&time.into(), &value.trim().into())
                })
                .collect(),
            _ => None,
        };
        steps.map(Steps)
    }
    fn to_text(&self) -> String {
        let step = |(time, value): &(Span, T)| format!("{time} {}", value.to_text());
        self.0.iter().map(step).collect::<Vec<_>>().join(", ")
    }
}

impl<T: ParamType> Steps<T> {
    /// Returns the schedule; `number` converts its values to numbers.
    ///
    /// # Errors
    /// Returns an error if the first step is not at 0 or the times do not increase.
    pub fn schedule(&self, repeats: bool, number: impl Fn(&T) -> u64) -> Result<Schedule> {
        let given = |i: usize| {
            let (time, value) = &self.0[i];
            format!("step {}: {time} {}", i + 1, value.to_text())
        };
        match self.0.first() {
            None => return Err(Error::new("at least one step is required")),
            Some((Span::ZERO, _)) => {}
            Some(_) => return Err(Error::not_allowed(given(0), "a first step at 0s")),
        }
        if let Some(i) = (1..self.0.len()).find(|i| self.0[*i].0 <= self.0[i - 1].0) {
            return Err(Error::not_allowed(given(i), "a time later than that of the step before"));
        }
        let steps = self.0.iter().map(|(time, value)| (*time, number(value))).collect();
        Ok(Schedule::new(steps, repeats))
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Stretch {
    start: u64,
    value: u64,
    /// Integral of the value from the start up to this step.
    before: u128,
}

/// Schedule: a value from each step to the next. If it repeats, the last step has the duration of
/// the one before; a single step lasts for ever.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    steps: Arc<[Stretch]>,
    /// Period in nanoseconds, and the integral over it.
    period: Option<(u64, u128)>,
}

impl Schedule {
    /// Creates a schedule of these steps, with the first at zero and increasing times.
    pub fn new(steps: Vec<(Span, u64)>, repeats: bool) -> Self {
        let mut last = Stretch { start: 0, value: 0, before: 0 };
        let steps: Arc<[Stretch]> = steps
            .into_iter()
            .map(|(time, value)| {
                let start = time.as_nanos();
                debug_assert!(start > last.start || start == 0);
                let before = last.before + area(last.value, start - last.start);
                last = Stretch { start, value, before };
                last
            })
            .collect();
        let period = (repeats && steps.len() > 1).then(|| {
            let length = last.start - steps[steps.len() - 2].start;
            (last.start.saturating_add(length), last.before + area(last.value, length))
        });
        Schedule { steps, period }
    }

    /// Returns the schedule up to a time, with this value from then on. The schedule must not
    /// repeat.
    pub fn with_step(&self, time: Time, value: u64) -> Schedule {
        let start = time.as_nanos();
        let kept = self.steps.iter().take_while(|step| step.start < start);
        let kept = kept.map(|step| (Span::from_nanos(step.start), step.value));
        Schedule::new(kept.chain([(Span::from_nanos(start), value)]).collect(), false)
    }

    /// Returns the value at `time`, and its end; `None`: for ever.
    pub fn at(&self, time: Time) -> (u64, Option<Time>) {
        let nanos = time.as_nanos();
        let (base, phase) = match self.period {
            Some((period, _)) => (nanos - nanos % period, nanos % period),
            None => (0, nanos),
        };
        let next = self.steps.partition_point(|step| step.start <= phase);
        let end = match (self.steps.get(next), self.period) {
            (Some(step), _) => Some(step.start),
            (None, Some((period, _))) => Some(period),
            (None, None) => None,
        };
        // A step that ends after the maximum time never ends.
        let end = end.and_then(|end| base.checked_add(end));
        (self.steps[next - 1].value, end.map(Time::from_nanos))
    }

    /// Returns the integral of the value from the start to `time`, in value times nanoseconds.
    pub fn integral(&self, time: Time) -> u128 {
        let nanos = time.as_nanos();
        let (whole, phase) = match self.period {
            Some((period, each)) => (u128::from(nanos / period) * each, nanos % period),
            None => (0, nanos),
        };
        let step = &self.steps[self.steps.partition_point(|step| step.start <= phase) - 1];
        whole + step.before + area(step.value, phase - step.start)
    }

    /// Returns the mean over a run of this length.
    pub fn mean(&self, duration: Span) -> u64 {
        let nanos = duration.as_nanos().max(1);
        (self.integral(Time::from_nanos(nanos)) / u128::from(nanos)) as u64
    }

    /// Returns the integral and the duration of all whole periods that together hold less than
    /// `area`, so that they need no iteration.
    pub fn whole_periods(&self, area: u128) -> (u128, Span) {
        match self.period {
            Some((period, each)) if each > 0 && area > each => {
                let count = (area - 1) / each;
                let nanos = count.saturating_mul(u128::from(period));
                (count * each, Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
            }
            _ => (0, Span::ZERO),
        }
    }

    /// Returns the largest value.
    pub fn max(&self) -> u64 {
        self.steps.iter().map(|step| step.value).max().unwrap_or(0)
    }
}

fn area(value: u64, nanos: u64) -> u128 {
    u128::from(value) * u128::from(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqmlab_core::Rate;
    use proptest::prelude::*;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn a_course_repeats_after_a_last_step_as_long_as_the_one_before() {
        let steps = || [(0, 5), (10, 7), (40, 0)].map(|(t, v)| (Span::from_nanos(t), v)).to_vec();
        let once = Schedule::new(steps(), false);
        assert_eq!(once.at(at(9)), (5, Some(at(10))));
        assert_eq!(once.at(at(10)), (7, Some(at(40))));
        assert_eq!(once.at(at(1000)), (0, None));
        assert_eq!(once.integral(at(1000)), 50 + 210);
        let again = Schedule::new(steps(), true);
        assert_eq!(again.at(at(69)), (0, Some(at(70))));
        assert_eq!(again.at(at(70)), (5, Some(at(80))));
        // 15 ns into a period that would end after the maximum time.
        assert_eq!(again.at(Time::MAX), (7, None));
        assert_eq!(again.integral(at(140 + 12)), 2 * 260 + 50 + 14);
        assert_eq!(again.mean(Span::from_nanos(70)), 260 / 70);
    }

    #[test]
    fn the_text_form_reads_back() {
        let steps = Steps(vec![
            (Span::ZERO, Rate::from_bps(100_000_000)),
            (Span::from_millis(500), Rate::from_bps(0)),
        ]);
        assert_eq!(steps.to_text(), "0s 100mbit, 500ms 0bit");
        assert_eq!(Steps::read(&steps.to_text().into()), Some(steps));
        assert_eq!(Steps::<Rate>::read(&"0s".into()), None);
    }

    proptest! {
        /// The integral equals the sum of the pieces returned by `at`.
        #[test]
        fn the_integral_is_the_sum_of_the_pieces(
            lengths in prop::collection::vec(1u64..50, 1..8),
            values in prop::collection::vec(0u64..1_000, 8),
            repeats: bool,
            end in 0u64..2_000,
        ) {
            let mut start = 0;
            let steps = lengths.iter().zip(&values).map(|(length, value)| {
                let step = (Span::from_nanos(start), *value);
                start += length;
                step
            });
            let schedule = Schedule::new(steps.collect(), repeats);
            let (mut now, mut sum) = (Time::ZERO, 0);
            while now < at(end) {
                let (value, until) = schedule.at(now);
                prop_assert!(until.is_none_or(|until| until > now));
                let until = until.map_or(at(end), |until| until.min(at(end)));
                sum += area(value, (until - now).as_nanos());
                now = until;
            }
            prop_assert_eq!(schedule.integral(at(end)), sum);
        }
    }
}
