//! What the traced steps spent their time in, as a table.

use std::fmt::Write;

use crate::import::chrome::{Operator, Operators};
use gnntop_analysis::figures::{counted, duration, percent};

/// Lines for the CPU, and for GPUs.
const MOST: usize = 12;
/// Columns of a name.
const NAME: usize = 44;

/// A table of the operators, and one of the kernels if there are any.
pub(super) fn text(operators: &Operators) -> String {
    let steps = operators.steps.max(1) as f64;
    let mut text = format!(
        "{}, {} each\n",
        counted(operators.steps, "step", "steps"),
        duration((operators.steps_us * 1e3 / steps) as u64)
    );
    for (title, is_kernel) in [("operator, own time", false), ("kernel", true)] {
        let all: Vec<&Operator> = operators.all.iter().filter(|operator| operator.is_kernel == is_kernel).collect();
        if all.is_empty() {
            continue;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n{title:NAME$} {:>8} {:>9} {:>8}", "a step", "calls", "share");
        for operator in all.iter().take(MOST) {
            row(&mut text, operators, &operator.name, operator.own_us, Some(operator.calls));
        }
        if all.len() > MOST {
            let rest = all[MOST..].iter().map(|operator| operator.own_us).sum();
            row(&mut text, operators, &format!("{} others", all.len() - MOST), rest, None);
        }
        if !is_kernel {
            row(&mut text, operators, "outside operators: Python, waiting", operators.outside_us, None);
        }
    }
    text.truncate(text.trim_end().len());
    text
}

fn row(text: &mut String, operators: &Operators, name: &str, us: f64, calls: Option<u64>) {
    let steps = operators.steps.max(1) as f64;
    let name: String = match name.chars().count() {
        ..=NAME => name.to_owned(),
        _ => name.chars().take(NAME - 1).chain(['…']).collect(),
    };
    let calls = calls.map_or_else(String::new, |calls| format!("{:.0}", calls as f64 / steps));
    let share = if operators.steps_us > 0.0 { percent(us / operators.steps_us) } else { "-".to_owned() };
    let _ = writeln!(text, "{name:NAME$} {:>8} {calls:>9} {share:>8}", duration((us * 1e3 / steps) as u64));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_operators_and_one_of_kernels() {
        let operator =
            |name: &str, is_kernel, calls, own_us| Operator { name: name.to_owned(), is_kernel, calls, own_us };
        let mut all = vec![operator("aten::addmm", false, 20, 6000.0), operator("gemm", true, 10, 4000.0)];
        all.extend((0..14).map(|n| operator(&format!("aten::op{n}"), false, 10, 10.0)));
        let found = Operators { steps: 10, steps_us: 10_000.0, outside_us: 3860.0, all };
        let text = text(&found);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "10 steps, 1.00 ms each");
        assert_eq!(lines[2], "operator, own time                             a step     calls    share");
        assert_eq!(lines[3], "aten::addmm                                    600 µs         2     60 %");
        assert_eq!(lines[15], "3 others                                      3.00 µs              0.3 %");
        assert_eq!(lines[16], "outside operators: Python, waiting             386 µs               39 %");
        assert_eq!(lines[19], "gemm                                           400 µs         1     40 %");
        assert_eq!(lines.len(), 20);
    }

    #[test]
    fn table_of_empty_trace_is_short() {
        assert_eq!(text(&Operators::default()), "0 steps, 0 ns each");
    }
}
