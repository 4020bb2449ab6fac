//! When a history's steps began and ended: between two values that were logged one after the other.

use std::cmp::Reverse;

use gnntop_analysis::figures::{count, counted, duration};

use super::series::{History, Point};
use crate::import::outcome::ImportSummary;

/// More steps than these are no steps, but samples or tokens that were counted.
const MAX_STEPS: u64 = 5_000_000;
/// Steps that start over after a longer pause may be of two runs.
const LONG_PAUSE_NS: u64 = 600_000_000_000;

/// Steps of the same length, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// The number of the first one.
    pub(super) first: u64,
    pub(super) steps: u64,
    /// Nanoseconds since 1970.
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
}

/// All steps of a history.
#[derive(Debug, Default)]
pub(super) struct Axis {
    pub(super) stretches: Vec<Stretch>,
    pub(super) steps: u64,
    /// Steps between two values, usually: these have one mean time.
    pub(super) interval: u64,
}

/// Why there are no steps.
pub(super) type NoSteps = String;

/// The name of the values that are logged once for each step: the ones of which there are most; a loss of the training if it has about
/// as many, since a library may log a summary at the end.
pub(super) fn choose<'a>(history: &'a History, asked: Option<&'a str>) -> Result<&'a str, NoSteps> {
    if let Some(name) = asked {
        let there = || history.series.keys().take(20).cloned().collect::<Vec<_>>().join(", ");
        return match history.series.contains_key(name) {
            true => Ok(name),
            false => Err(format!("has no values called {name}; it has {}", there())),
        };
    }
    let is_loss = |name: &str| {
        let name = name.to_lowercase();
        name.contains("loss") && !["val", "eval", "test"].iter().any(|other| name.contains(other))
    };
    let most = history.series.values().map(Vec::len).max().unwrap_or_default();
    let about_as_many = history.series.iter().filter(|(_, points)| points.len() * 10 >= most * 9);
    let best = about_as_many.max_by_key(|(name, points)| (is_loss(name), points.len(), Reverse(*name)));
    best.map(|(name, _)| name.as_str()).ok_or_else(|| "has no numbers with a time".to_owned())
}

impl Axis {
    /// The steps between these values.
    pub(super) fn new(name: &str, points: &[Point], account: &mut ImportSummary) -> Result<Self, NoSteps> {
        let moments = moments(points);
        let falls = moments.windows(2).filter(|pair| pair[1].step < pair[0].step).count();
        let numbering = Numbering::find(&moments, falls);
        let (mut axis, mut number, mut longest_fall_ns) = (Self::default(), 0, 0);
        for pair in moments.windows(2) {
            let ([before, after], took_ns) = ([&pair[0], &pair[1]], pair[1].wall_ns - pair[0].wall_ns);
            let steps = match numbering {
                Numbering::Rows => after.values,
                Numbering::Stretches => 1,
                Numbering::Own | Numbering::CountedOn => (after.step - before.step).max(0) as u64,
            };
            if steps == 0 {
                longest_fall_ns = longest_fall_ns.max(took_ns);
                continue;
            }
            let first = if numbering == Numbering::Own { (before.step + 1) as u64 } else { number + 1 };
            number = first + steps - 1;
            axis.steps += steps;
            axis.stretches.push(Stretch { first, steps, start_ns: before.wall_ns, end_ns: after.wall_ns });
        }
        if axis.steps == 0 {
            return Err(format!(
                "has {} of {name}, all logged at one moment or step: no step has a time",
                values(points)
            ));
        }
        axis.describe(name, points, numbering, account);
        if falls > 0 {
            let mut warning = format!(
                "steps start over {}: a run that was resumed, or another one; steps are counted on",
                counted(falls as u64, "time", "times")
            );
            if longest_fall_ns > LONG_PAUSE_NS {
                warning += &format!(", after a pause of up to {}", duration(longest_fall_ns));
            }
            account.warnings.push(warning);
        }
        Ok(axis)
    }

    fn describe(&mut self, name: &str, points: &[Point], numbering: Numbering, account: &mut ImportSummary) {
        account.used.push(format!("{name} as steps: {}", values(points)));
        self.interval = self.usual_interval();
        account.guessed.push(match numbering {
            Numbering::Own | Numbering::CountedOn => "a step ends when its value is logged".to_owned(),
            Numbering::Rows => format!("{name} has one step number for all its values: each value is a step"),
            Numbering::Stretches => {
                format!("the numbers beside {name} are too far apart to be steps: each value is a step")
            }
        });
        if self.interval > 1 {
            account.guessed.push(format!(
                "values are {} steps apart in time: each step has the mean time of these, so single slow steps are not seen",
                count(self.interval)
            ));
        }
        account.left_out.push("the time before the first value, whose start is not known".to_owned());
    }

    /// Steps of most stretches.
    fn usual_interval(&self) -> u64 {
        let mut steps: Vec<u64> = self.stretches.iter().map(|stretch| stretch.steps).collect();
        let middle = steps.len() / 2;
        if steps.is_empty() { 1 } else { *steps.select_nth_unstable(middle).1 }
    }
}

fn values(points: &[Point]) -> String {
    counted(points.len() as u64, "value", "values")
}

/// How steps are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Numbering {
    /// As in the history.
    Own,
    /// Counted from 1, because the history's numbers start over or begin below 0.
    CountedOn,
    /// By the values, because the history's numbers are all the same.
    Rows,
    /// By the moments, because the history's numbers count something else.
    Stretches,
}

impl Numbering {
    fn find(moments: &[Moment], falls: usize) -> Self {
        let span = moments.windows(2).map(|pair| pair[1].step.abs_diff(pair[0].step)).fold(0, u64::saturating_add);
        match () {
            () if span == 0 => Self::Rows,
            () if span > MAX_STEPS => Self::Stretches,
            () if falls > 0 || moments.iter().any(|moment| moment.step < 0) => Self::CountedOn,
            () => Self::Own,
        }
    }
}

/// Values that were logged at the same time: a clock may be coarse, and trackers write several at once.
struct Moment {
    wall_ns: u64,
    /// The largest one.
    step: i64,
    values: u64,
}

fn moments(points: &[Point]) -> Vec<Moment> {
    let mut points = points.to_vec();
    points.sort_by_key(|point| point.wall_ns);
    let mut moments: Vec<Moment> = Vec::new();
    for point in points {
        match moments.last_mut() {
            Some(last) if last.wall_ns == point.wall_ns => {
                last.step = last.step.max(point.step);
                last.values += 1;
            }
            _ => moments.push(Moment { wall_ns: point.wall_ns, step: point.step, values: 1 }),
        }
    }
    moments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(points: &[(u64, i64)]) -> (Result<Axis, NoSteps>, ImportSummary) {
        let mut account = ImportSummary::default();
        let points: Vec<Point> =
            points.iter().map(|(wall_ns, step)| Point { wall_ns: *wall_ns, step: *step, value: 0.0 }).collect();
        (Axis::new("loss", &points, &mut account), account)
    }

    fn stretches(points: &[(u64, i64)]) -> Vec<(u64, u64, u64, u64)> {
        let stretch = |stretch: &Stretch| (stretch.first, stretch.steps, stretch.start_ns, stretch.end_ns);
        axis(points).0.unwrap().stretches.iter().map(stretch).collect()
    }

    #[test]
    fn steps_are_between_values_and_share_the_time_between_them() {
        assert_eq!(stretches(&[(10, 10), (30, 20), (35, 30)]), [(11, 10, 10, 30), (21, 10, 30, 35)]);
        assert_eq!(stretches(&[(10, 0), (30, 1)]), [(1, 1, 10, 30)]);
        let (axis, account) = axis(&[(10, 10), (30, 20), (35, 30)]);
        assert_eq!(axis.unwrap().interval, 10);
        assert!(account.guessed.iter().any(|line| line.contains("mean time")));
    }

    #[test]
    fn loss_of_the_training_is_logged_once_a_step() {
        let mut history = History::default();
        let mut add = |name: &str, values: i64| (0..values).for_each(|step| history.add(name, 2e18, step, 0.0));
        for (name, values) in [("epoch", 21), ("loss", 20), ("val_loss", 21), ("lr", 20), ("gnntop/steps", 90)] {
            add(name, values);
        }
        assert_eq!(choose(&history, None), Ok("loss"));
        assert_eq!(choose(&history, Some("lr")), Ok("lr"));
        assert!(choose(&history, Some("x")).unwrap_err().contains("it has epoch, loss, lr, val_loss"));
    }

    #[test]
    fn values_of_one_moment_are_one() {
        assert_eq!(stretches(&[(10, 1), (30, 2), (30, 3), (40, 4)]), [(2, 2, 10, 30), (4, 1, 30, 40)]);
        assert!(axis(&[(10, 1), (10, 2)]).0.unwrap_err().contains("2 values of loss"));
    }

    #[test]
    fn steps_that_start_over_are_counted_on_with_a_warning() {
        assert_eq!(stretches(&[(10, 1), (20, 3), (50, 2), (60, 4)]), [(1, 2, 10, 20), (3, 2, 50, 60)]);
        assert!(axis(&[(10, 1), (20, 3), (50, 2), (60, 4)]).1.warnings[0].contains("start over 1 time"));
    }

    #[test]
    fn steps_below_0_are_counted_from_1() {
        let points = [(10, -1), (20, 0), (30, 1), (40, 2)];
        assert_eq!(stretches(&points), [(1, 1, 10, 20), (2, 1, 20, 30), (3, 1, 30, 40)]);
    }

    #[test]
    fn numbers_that_are_no_steps_are_not_taken_for_steps() {
        assert_eq!(stretches(&[(10, 0), (20, 0), (20, 0), (30, 0)]), [(1, 2, 10, 20), (3, 1, 20, 30)]);
        assert_eq!(stretches(&[(10, 0), (20, 1 << 40)]), [(1, 1, 10, 20)]);
    }
}
