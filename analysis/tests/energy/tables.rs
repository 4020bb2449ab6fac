//! Prints the tables of `docs/energy.md`: how far energy by step and phase is from a known truth.

use gnntop_analysis::energy::Fit;

use super::simulator::{Errors, GRID, Setting, Simulation, grid_setting, mean_errors};

/// Seeds that each row is the mean of.
const SEEDS: u64 = 6;

/// `cargo test -p gnntop-analysis --test it energy::tables -- --ignored --nocapture`
#[test]
#[ignore = "prints the tables of docs/energy.md"]
fn print_energy_tables() {
    steps();
    intervals();
    phases();
    part_time_sensor();
}

fn steps() {
    println!("### Energy of a step, beside reading the counter at its ends\n");
    println!("| steps | jitter | counter | poll | at the ends | straight | with a fit | 20 steps | whole run |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for (jitter, period_ms, poll_ms, scale) in [
        (0.02, 100.0, 20.0, 1.0),
        (0.1, 100.0, 20.0, 1.0),
        (0.3, 100.0, 20.0, 1.0),
        (0.1, 100.0, 50.0, 1.0),
        (0.1, 100.0, 100.0, 1.0),
        (0.1, 20.0, 4.0, 1.0),
        (0.1, 100.0, 20.0, 5.0),
    ] {
        let setting = |seed| Setting { seed, jitter, period_ms, poll_ms, scale, ..Setting::default() };
        let settings: Vec<Setting> = (0..SEEDS).map(setting).collect();
        let (straight, fitted) = (mean_errors(&settings, false), mean_errors(&settings, true));
        println!(
            "| {:.0} ms | {jitter} | {period_ms} ms | {poll_ms} ms | {:.0} % | {:.1} % | {:.1} % | {:.2} % | {:.3} % |",
            105.0 * scale,
            straight.naive,
            straight.account,
            fitted.account,
            fitted.twenty,
            fitted.sum
        );
    }
}

fn intervals() {
    println!("\n### Intervals: how often the truth lies inside, and how wide they are\n");
    println!("| steps | jitter | noise | | error | hard bounds | their width | shown interval | its width |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut coverage = Vec::new();
    for row in GRID {
        let settings: Vec<Setting> = (0..SEEDS).map(|seed| grid_setting(row, seed)).collect();
        for (name, with_phases) in [("straight", false), ("with a fit", true)] {
            let Errors { account, hard_coverage, hard_width, shown_coverage, shown_width, .. } =
                mean_errors(&settings, with_phases);
            coverage.push(shown_coverage);
            println!(
                "| {:.0} ms | {} | {} | {name} | {account:.1} % | {hard_coverage:.1} % | +-{hard_width:.0} % | \
                 {shown_coverage:.1} % | +-{shown_width:.1} % |",
                105.0 * row.2,
                row.0,
                row.1
            );
        }
    }
    println!("\nMean coverage of the shown intervals: {:.1} %.", coverage.iter().sum::<f64>() / coverage.len() as f64);
}

fn phases() {
    println!("\n### Power by phase, by a counter that moves every 100 ms\n");
    println!("| jitter | poll | R2 | window | forward, 80 W | backward, 130 W | others, 50 W |");
    println!("|---|---|---|---|---|---|---|");
    for (jitter, poll_ms) in [(0.1, 20.0), (0.1, 10.0), (0.1, 5.0), (0.02, 10.0), (0.3, 10.0)] {
        fits(Setting { steps: 2000, jitter, poll_ms, ..Setting::default() });
    }
}

fn part_time_sensor() {
    println!("\n### The same by a sensor that sees 25 of each 100 ms\n");
    println!("| jitter | poll | R2 | window | forward, 80 W | backward, 130 W | others, 50 W |");
    println!("|---|---|---|---|---|---|---|");
    for (jitter, poll_ms) in [(0.1, 20.0), (0.1, 10.0), (0.1, 5.0), (0.3, 5.0)] {
        fits(Setting { steps: 2000, jitter, poll_ms, part: 0.25, ..Setting::default() });
    }
}

/// One row: the range of each number over the seeds.
fn fits(setting: Setting) {
    let fit = |seed| {
        let simulation = Simulation::run(Setting { seed, ..setting });
        Fit::new(&simulation.line(), &simulation.profile()).unwrap()
    };
    let fits: Vec<Fit> = (0..SEEDS).map(fit).collect();
    let range = |of: &dyn Fn(&Fit) -> f64, digits: usize| {
        let (low, high) = fits.iter().map(of).fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(x), b.max(x)));
        format!("{low:.digits$} to {high:.digits$}")
    };
    let window = |fit: &Fit| fit.window_ns.map_or("all".to_owned(), |ns| format!("{} ms", ns as f64 / 1e6));
    let mut windows: Vec<String> = fits.iter().map(window).collect();
    windows.sort();
    windows.dedup();
    let watts = |phase: usize| range(&|fit: &Fit| fit.watts[phase], 0);
    println!(
        "| {} | {} ms | {} | {} | {} W | {} W | {} W |",
        setting.jitter,
        setting.poll_ms,
        range(&|fit: &Fit| fit.r2, 2),
        windows.join(", "),
        watts(1),
        watts(2),
        watts(0)
    );
}
