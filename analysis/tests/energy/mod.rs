//! Energy against a known truth: the settings of `docs/energy.md`, the promises made there, and parts that add up.

mod simulator;
mod tables;

use gnntop_analysis::energy::{Account, Fit, FitRefusal, Label, PhaseShare};
use simulator::{GRID, PHASES, Setting, Simulation, errors, grid_setting, mean_errors};

const SEEDS: u64 = 6;

#[test]
fn energy_bounds_contain_truth() {
    let mut coverage = Vec::new();
    for row in GRID {
        let settings: Vec<Setting> = (0..SEEDS).map(|seed| grid_setting(row, seed)).collect();
        for with_phases in [false, true] {
            let e = mean_errors(&settings, with_phases);
            assert!(e.hard_coverage >= 99.99, "{row:?}: {e:?}");
            assert!(e.shown_coverage >= 85.0, "{row:?}, fit {with_phases}: {e:?}");
            coverage.push(e.shown_coverage);
        }
    }
    let mean = coverage.iter().sum::<f64>() / coverage.len() as f64;
    assert!(mean >= 94.0, "{mean}: {coverage:?}");
}

#[test]
fn step_energy_beats_plain_counter() {
    for jitter in [0.02, 0.1, 0.3] {
        let setting = |seed| Setting { seed, jitter, poll_ms: 20.0, ..Setting::default() };
        let settings: Vec<Setting> = (0..SEEDS).map(setting).collect();
        let (straight, fitted) = (mean_errors(&settings, false), mean_errors(&settings, true));
        assert!(straight.naive >= 20.0, "{straight:?}");
        assert!(straight.account <= 5.0 && straight.twenty <= 0.5 && straight.sum <= 0.02, "{straight:?}");
        assert!(fitted.account <= 3.0, "{fitted:?}");
    }
}

#[test]
fn equal_steps_have_hard_bounds() {
    let simulation = Simulation::run(Setting { seed: 3, jitter: 0.01, ..Setting::default() });
    let account = simulation.account(false);
    let ((start, end), _) = simulation.inside(&account)[40];
    let figure = account.figure(start..end).unwrap();
    assert!((figure.pm95 - (figure.hi - figure.lo) / 2.0).abs() < 0.01 * figure.pm95, "{figure:?}");
    assert_eq!(errors(&simulation, &account).shown_coverage, 100.0);
}

#[test]
fn steps_locked_to_the_counter_have_no_power_by_phase() {
    let scale = 100.0 / 105.0;
    let simulation = Simulation::run(Setting { seed: 3, jitter: 0.0, scale, ..Setting::default() });
    let account = simulation.account(true);
    assert_eq!(account.fit().unwrap_err(), FitRefusal::Locked);
    assert_eq!(account.phase_share(), PhaseShare::Duration);
    assert_eq!(errors(&simulation, &account).shown_coverage, 100.0);
}

#[test]
fn a_part_time_sensor_is_found_and_noise_is_refused() {
    for seed in 0..SEEDS {
        let setting = Setting { seed, steps: 2000, part: 0.25, ..Setting::default() };
        let simulation = Simulation::run(setting);
        let fit = Fit::new(&simulation.line(), &simulation.profile()).unwrap();
        assert_eq!(fit.window_ns, Some(25_000_000), "{fit:?}");
        assert!(fit.explains() && (fit.watts[2] - 130.0).abs() < 6.0, "{fit:?}");
        assert_eq!(fit.is_own, [false, true, true, false, false], "10 and 5 ms are too short");
    }
    let noisy = Simulation::run(Setting { seed: 1, noise: 0.6, jitter: 0.02, ..Setting::default() });
    assert!(matches!(noisy.account(true).fit(), Err(FitRefusal::Unexplained(r2)) if r2 < 0.9));
}

/// Steps, what lies between them, phases and epochs against the whole, in microjoules.
fn assert_adds_up(simulation: &Simulation, account: &Account) {
    let between = |start: u64, end: u64| account.between_uj(start..end);
    let (first, last) = (simulation.steps[0].0, simulation.steps[simulation.steps.len() - 1].1);
    let steps: u64 = simulation.steps.iter().map(|(start, end)| between(*start, *end)).sum();
    let gaps: u64 = simulation.steps.windows(2).map(|pair| between(pair[0].1, pair[1].0)).sum();
    let around = between(0, first) + between(last, u64::MAX);
    assert_eq!(steps + gaps + around, account.line().total_uj());
    let epochs: u64 = simulation.steps.chunks(64).map(|of| between(of[0].0, of[of.len() - 1].1)).sum();
    assert_eq!(epochs, steps, "steps follow on each other here");
    for (step, (start, end)) in simulation.steps.iter().enumerate() {
        let uj = between(*start, *end);
        let mut phase_ns: Vec<u64> =
            simulation.spans[step * PHASES.len()..][..PHASES.len()].iter().map(|s| s.end_ns - s.start_ns).collect();
        phase_ns.push(end - start - phase_ns.iter().sum::<u64>());
        assert_eq!(account.split_uj(uj, &phase_ns).iter().sum::<u64>(), uj);
    }
}

#[test]
fn phase_energies_add_up() {
    for with_phases in [false, true] {
        let simulation = Simulation::run(Setting { seed: 5, jitter: 0.3, noise: 0.2, ..Setting::default() });
        assert_adds_up(&simulation, &simulation.account(with_phases));
    }
}

#[test]
fn energy_figures_have_labels() {
    let simulation = Simulation::run(Setting::default());
    let account = simulation.account(true);
    let span = account.line().span().unwrap();
    let run = account.figure(span.clone()).unwrap();
    assert_eq!((run.label, run.coverage(), run.unknown_share, run.is_provisional), (Label::Measured, 1.0, 0.0, false));
    let ((start, end), _) = simulation.inside(&account)[10];
    assert_eq!(account.figure(start..end).unwrap().label, Label::Interpolated);
    assert!(account.figure(span.end - 1000..span.end + 1_000_000).unwrap().is_provisional);
    assert_eq!(account.figure(span.end + 1..span.end + 2), None, "nothing is known of later");
}
