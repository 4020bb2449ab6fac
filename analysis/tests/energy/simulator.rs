//! A training whose energy is known: phases of given power, a counter that is slower than they are, and polls of it.
//! Seeded, so that every run of it is the same. The settings are those of `docs/energy.md`.

use gnntop_analysis::energy::{
    Account, CounterReader, CounterRules, EnergyLine, EnergySource, Label, PhaseSpan, PowerRange, Profile,
};

const MS: f64 = 1e6;
/// Phases: name, milliseconds, watts.
pub const PHASES: [(&str, f64, f64); 4] =
    [("data", 10.0, 45.0), ("forward", 50.0, 80.0), ("backward", 40.0, 130.0), ("optimizer", 5.0, 60.0)];
/// When the simulated session starts.
const START_NS: u64 = 5_000_000_000;

/// What is simulated.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub seed: u64,
    pub steps: usize,
    /// Standard deviation of the logarithm of a phase's length.
    pub jitter: f64,
    /// Relative standard deviation of a phase's power from step to step.
    pub noise: f64,
    /// All lengths times this.
    pub scale: f64,
    /// How often the counter moves.
    pub period_ms: f64,
    /// The share of each period that the sensor sees.
    pub part: f64,
    pub poll_ms: f64,
}

impl Default for Setting {
    fn default() -> Self {
        Self { seed: 0, steps: 1000, jitter: 0.1, noise: 0.0, scale: 1.0, period_ms: 100.0, part: 1.0, poll_ms: 10.0 }
    }
}

/// The five settings of the uncertainty table: jitter, noise, scale.
pub const GRID: [(f64, f64, f64); 5] =
    [(0.02, 0.0, 1.0), (0.1, 0.05, 1.0), (0.3, 0.1, 1.0), (0.1, 0.05, 0.2), (0.1, 0.05, 5.0)];

/// The setting of a row of [`GRID`].
pub fn grid_setting((jitter, noise, scale): (f64, f64, f64), seed: u64) -> Setting {
    Setting { seed, jitter, noise, scale, ..Setting::default() }
}

/// Numbers that look random, by SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Box and Muller 1958.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// What was simulated, with the truth.
pub struct Simulation {
    pub setting: Setting,
    /// Ends of phases; energy so far in joules at each.
    edges_ns: Vec<f64>,
    truth_j: Vec<f64>,
    watts: Vec<f64>,
    updates_ns: Vec<f64>,
    values_j: Vec<f64>,
    pub spans: Vec<PhaseSpan>,
    /// Start and end of each step.
    pub steps: Vec<(u64, u64)>,
}

/// Linear interpolation in an ascending table.
fn interpolate(x: f64, xs: &[f64], ys: &[f64]) -> f64 {
    let after = xs.partition_point(|at| *at <= x);
    if after == 0 || after == xs.len() {
        return ys[after.min(xs.len() - 1)];
    }
    let share = (x - xs[after - 1]) / (xs[after] - xs[after - 1]);
    ys[after - 1] + (ys[after] - ys[after - 1]) * share
}

impl Simulation {
    pub fn run(setting: Setting) -> Self {
        let mut random = Random(setting.seed.wrapping_mul(7919).wrapping_add(17));
        let mut all = Self {
            setting,
            edges_ns: vec![START_NS as f64],
            truth_j: vec![0.0],
            watts: Vec::new(),
            updates_ns: Vec::new(),
            values_j: Vec::new(),
            spans: Vec::new(),
            steps: Vec::new(),
        };
        for _ in 0..setting.steps {
            let start_ns = all.end_ns();
            for (phase, (_, ms, watts)) in PHASES.iter().enumerate() {
                let watts = watts * (1.0 + setting.noise * random.normal());
                let ns = (ms * MS * setting.scale * (setting.jitter * random.normal()).exp()).round();
                let (from, joules) = (all.end_ns(), all.truth_j[all.truth_j.len() - 1] + watts * ns / 1e9);
                all.spans.push(PhaseSpan { phase, start_ns: from, end_ns: from + ns as u64 });
                all.edges_ns.push(from as f64 + ns);
                all.truth_j.push(joules);
                all.watts.push(watts);
            }
            all.steps.push((start_ns, all.end_ns()));
        }
        all.count(random.uniform());
        all
    }

    fn end_ns(&self) -> u64 {
        self.edges_ns[self.edges_ns.len() - 1] as u64
    }

    /// What the counter shows, and when it moves.
    fn count(&mut self, offset: f64) {
        let period_ns = self.setting.period_ms * MS;
        let mut t_ns = START_NS as f64 + offset * period_ns;
        let mut value = self.truth(t_ns);
        while t_ns < self.end_ns() as f64 {
            if self.setting.part >= 1.0 {
                value = self.truth(t_ns);
            } else if !self.updates_ns.is_empty() {
                let window_ns = self.setting.part * period_ns;
                value += (self.truth(t_ns) - self.truth(t_ns - window_ns)) / self.setting.part;
            }
            self.updates_ns.push(t_ns);
            self.values_j.push(value);
            t_ns += period_ns;
        }
    }

    /// True energy up to a time, in joules.
    pub fn truth(&self, t_ns: f64) -> f64 {
        interpolate(t_ns, &self.edges_ns, &self.truth_j)
    }

    /// What the counter shows at a time, in joules.
    pub fn shown(&self, t_ns: f64) -> f64 {
        let moved = self.updates_ns.partition_point(|at| *at <= t_ns);
        moved.checked_sub(1).map_or(0.0, |last| self.values_j[last])
    }

    /// The counter as it is polled, through the counter engine.
    pub fn line(&self) -> EnergyLine {
        let rules = CounterRules { unit_uj: 1, max_value: None, most_watts: 5000.0, oldest_ns: None };
        let (mut counter, mut line) = (CounterReader::new(rules), EnergyLine::new());
        let mut t_ns = START_NS as f64;
        while t_ns < self.end_ns() as f64 {
            // Some start, and what the counter shows before it first moves.
            let shown = self.shown(t_ns).max(self.values_j[0] - 1.0) + 10.0;
            line.read(&mut counter, t_ns as u64, (shown * 1e6).round() as u64);
            t_ns += self.setting.poll_ms * MS;
        }
        line
    }

    pub fn profile(&self) -> Profile {
        Profile::new(PHASES.len(), self.spans.iter().copied())
    }

    /// The account, with phases or without.
    pub fn account(&self, with_phases: bool) -> Account {
        let profile = if with_phases { self.profile() } else { Profile::new(PHASES.len(), []) };
        let mut watts = self.watts.clone();
        watts.sort_by(f64::total_cmp);
        let at = |share: f64| watts[(watts.len() as f64 * share) as usize];
        let power = PowerRange { least_watts: at(0.01), most_watts: at(0.99) };
        let lengths: Vec<u64> = self.steps.iter().map(|(start, end)| end - start).collect();
        let source = EnergySource { best: Label::Measured, band: (1.0, 1.0), power };
        Account::new(self.line(), profile, source, &lengths)
    }

    /// The steps that lie between the first knot and the last, with their true energy in joules.
    pub fn inside(&self, account: &Account) -> Vec<((u64, u64), f64)> {
        let span = account.line().span().unwrap();
        let known = self.steps.iter().filter(|(start, end)| *start > span.start && *end < span.end);
        known.map(|&(start, end)| ((start, end), self.truth(end as f64) - self.truth(start as f64))).collect()
    }
}

/// Errors and coverage over the steps of one simulation, in percent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Errors {
    /// Root mean square relative error of reading the counter at a step's ends.
    pub naive: f64,
    /// The same of the account.
    pub account: f64,
    /// The same of sums over twenty steps.
    pub twenty: f64,
    /// Steps whose truth lies within the hard bounds, and half their width as a share of the step.
    pub hard_coverage: f64,
    pub hard_width: f64,
    /// Steps whose truth lies within the interval that is shown, and half its width.
    pub shown_coverage: f64,
    pub shown_width: f64,
    /// Relative error of all steps together.
    pub sum: f64,
}

/// How far an account is from the truth.
pub fn errors(simulation: &Simulation, account: &Account) -> Errors {
    let steps = simulation.inside(account);
    let mut e = Errors::default();
    let (mut counted, mut known) = (0.0, 0.0);
    for &((start, end), truth) in &steps {
        let naive = simulation.shown(end as f64) - simulation.shown(start as f64);
        let figure = account.figure(start..end).unwrap();
        e.naive += ((naive - truth) / truth).powi(2);
        e.account += ((figure.joules - truth) / truth).powi(2);
        e.hard_coverage += f64::from(u8::from(figure.lo <= truth && truth <= figure.hi));
        e.hard_width += (figure.hi - figure.lo) / 2.0 / truth;
        e.shown_coverage += f64::from(u8::from((figure.joules - truth).abs() <= figure.pm95));
        e.shown_width += figure.pm95 / truth;
        (counted, known) = (counted + figure.joules, known + truth);
    }
    let n = steps.len() as f64;
    let percent = |sum: f64| 100.0 * sum / n;
    let twenty: Vec<f64> = steps
        .chunks_exact(20)
        .map(|of| {
            let truth: f64 = of.iter().map(|(_, truth)| truth).sum();
            (account.between_uj(of[0].0.0..of[19].0.1) as f64 / 1e6 - truth) / truth
        })
        .collect();
    Errors {
        naive: 100.0 * (e.naive / n).sqrt(),
        account: 100.0 * (e.account / n).sqrt(),
        twenty: 100.0 * (twenty.iter().map(|x| x * x).sum::<f64>() / twenty.len().max(1) as f64).sqrt(),
        hard_coverage: percent(e.hard_coverage),
        hard_width: percent(e.hard_width),
        shown_coverage: percent(e.shown_coverage),
        shown_width: percent(e.shown_width),
        sum: 100.0 * (counted / known - 1.0),
    }
}

/// Means over seeds.
pub fn mean_errors(settings: &[Setting], with_phases: bool) -> Errors {
    let all: Vec<Errors> = settings
        .iter()
        .map(|setting| {
            let simulation = Simulation::run(*setting);
            errors(&simulation, &simulation.account(with_phases))
        })
        .collect();
    let mean = |of: fn(&Errors) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
    Errors {
        naive: mean(|e| e.naive),
        account: mean(|e| e.account),
        twenty: mean(|e| e.twenty),
        hard_coverage: mean(|e| e.hard_coverage),
        hard_width: mean(|e| e.hard_width),
        shown_coverage: mean(|e| e.shown_coverage),
        shown_width: mean(|e| e.shown_width),
        sum: mean(|e| e.sum.abs()),
    }
}
