//! Energy that a table tells and nobody measured: a power times a time.

use gnntop_analysis::findings::FindingKind;
use gnntop_wire::{SignalKind, Unit};

use super::case::{Case, strengths};
use super::training_loop::TrainingLoop;

const STEPS: u64 = 300;

pub fn cases() -> Vec<Case> {
    let spreads = [(0.02, "2 % spread"), (0.0005, "0.05 % spread"), (0.0, "no spread")];
    let mut all = strengths(spreads, |spread| constant("constant watts by the wall's clock", 51, spread, false));
    all.extend(strengths(spreads, |spread| constant("constant watts by the step's own time", 52, spread, true)));
    let measured = constant("clean: power that varies", 53, 0.08, false);
    all.push(Case { expect: Vec::new(), expected_texts: Vec::new(), ..measured });
    all
}

/// A row's energy is 360 W, give or take `spread`, times its step's own time, or the time since the row before.
fn constant(class: &'static str, seed: u64, spread: f64, is_by_step: bool) -> Case {
    let mut run = TrainingLoop::new(seed);
    let column = run.column(90, "cpu.0.energy", Unit::Microjoules, SignalKind::Counter);
    let mut microjoules = 0.0;
    for _ in 0..STEPS {
        let pause_ms = run.random.skewed(2.0, 0.6);
        run.pass_exactly(pause_ms);
        let inside_ms = run.timed_step();
        let watts = 360.0 * (1.0 + spread * run.random.normal());
        microjoules += watts * 1e3 * if is_by_step { inside_ms } else { pause_ms + inside_ms };
        run.cell(column, microjoules);
    }
    Case::new(class, run.stream()).expect(FindingKind::ModelledEnergy).expect_text("constant 360 W")
}
