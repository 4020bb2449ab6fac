//! Phases of a step, and spans by name. A name is a phase's where the training thread has one in its steps, else a span's.

use crate::catalogue::context::Catalogue;
use crate::catalogue::measured::{AbsentFigure, FigureResult, FoundValue, SPANS, STEPS};
use crate::catalogue::names::find_named;
use crate::catalogue::row::{Names, Row, shared_durations};
use crate::catalogue::statistic::Statistic;
use crate::figures::FigureUnit;
use crate::store::Phase;

pub(in crate::catalogue) const ROWS: &[Row] = &[
    Row {
        subject: "work.PHASE",
        about: "the part of the work that a phase takes",
        names: Names::Program(|context| {
            let phases = context.store.phases().iter().filter(|phase| context.work().share(phase.slot).is_some());
            phases.map(|phase| phase.text.clone()).collect()
        }),
        statistics: |_| vec![(Statistic::Share, FigureUnit::Share)],
        get: |context, name, _| {
            let share = phase(context, name).and_then(|phase| context.work().share(phase.slot));
            FoundValue::from_count(share, context.statistics().steps(), STEPS, "it is no phase of the work")
        },
    },
    Row {
        subject: "mark.MARK",
        about: "marks by their text, and how long what ended at them took",
        names: Names::Program(|context| context.marks().iter().map(|(text, _)| (*text).to_owned()).collect()),
        statistics: |_| {
            vec![
                (Statistic::Count, FigureUnit::Count),
                (Statistic::Total, FigureUnit::Time),
                (Statistic::Share, FigureUnit::Share),
            ]
        },
        get: mark_figure,
    },
    Row {
        subject: "span.SPAN",
        about: "the spans of this name over all threads, also where a phase has it; the share is of the time recorded",
        names: Names::Program(|context| {
            let has_phase = |name: &&str| context.store.phases().iter().any(|phase| phase.text == **name);
            span_names(context).filter(has_phase).map(str::to_owned).collect()
        }),
        statistics: |_| shared_durations(),
        get: span_figure,
    },
    NAMED,
];

/// The subject of every name that no other row has.
pub(in crate::catalogue) const NAMED: Row = Row {
    subject: "NAME",
    about: "a phase's time in a step, over the steps that spend any in it; `gap`, the time of a step in no phase; \
            or the spans of this name. The share is of the steps' wall time, and of spans of the time recorded",
    names: Names::Program(|context| {
        let phases = context.store.phases().iter().map(|phase| phase.text.as_str());
        phases.chain(span_names(context)).map(str::to_owned).collect()
    }),
    statistics: |_| shared_durations(),
    get: phase_figure,
};

fn phase<'a>(context: &Catalogue<'a>, name: &str) -> Option<&'a Phase> {
    // Where the program names no phases, all time is in none: that is no gap.
    let phases = context.store.phases();
    find_named(phases.iter().filter(|_| phases.len() > 1), |phase| &phase.text, name)
}

/// The names of spans that are no phases.
fn span_names<'a>(context: &Catalogue<'a>) -> impl Iterator<Item = &'a str> + use<'a> {
    let store = context.store;
    store.spans().iter().filter(|span| !span.is_phase).map(|span| store.name(span.name))
}

fn phase_figure(context: &Catalogue<'_>, name: &str, statistic: Statistic) -> FigureResult {
    let steps = context.statistics();
    if let Some((phase, all)) = phase(context, name).and_then(|phase| Some((phase, steps.phase(phase.slot)?))) {
        return match statistic {
            Statistic::Share => {
                FoundValue::from_count(steps.share(phase.slot), steps.steps(), STEPS, "there are no steps")
            }
            _ => FoundValue::from_durations(all, statistic, STEPS),
        };
    }
    span_figure(context, name, statistic)
}

fn span_figure(context: &Catalogue<'_>, name: &str, statistic: Statistic) -> FigureResult {
    let Some(span) = context.span(name) else {
        return AbsentFigure::because("the recording has no such phase or span");
    };
    if statistic == Statistic::Share {
        let own_ns = span.durations.total_ns().saturating_sub(span.repeated_ns);
        let share = own_ns as f64 / context.store.elapsed_ns() as f64;
        return FoundValue::from_count(Some(share), span.durations.count(), SPANS, "no time was recorded");
    }
    FoundValue::from_durations(&span.durations, statistic, SPANS)
}

fn mark_figure(context: &Catalogue<'_>, name: &str, statistic: Statistic) -> FigureResult {
    let Some(marks) = context.mark(name) else {
        return AbsentFigure::because("the recording has no such mark");
    };
    let value = match statistic {
        Statistic::Total => marks.total_ns.map(|ns| ns as f64),
        Statistic::Share => context.store.marks_share(marks),
        _ => Some(marks.count as f64),
    };
    FoundValue::from_count(value, marks.count, ["mark", "marks"], "these marks say no duration")
}
