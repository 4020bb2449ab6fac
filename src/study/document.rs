//! The report of a study: its conclusions in words, then tables and figures, then each setting by itself.

use super::measured::MeasuredSetting;
use super::plan::Study;
use super::{conclusions, pictures, tables};
use crate::report::Document;

const WORDS: &str = "A period runs from the end of the previous step to the end of this one; a step begins at its own start. Its work is the period without the gap and without waiting for its batch, which is what a timer around a step measures. The rest is between steps; an epoch's wall time is the sum of both. The first epoch has its own column. The other epoch columns are medians over later epochs without skipped steps.";

/// The report. `failures` are what went wrong, one line each.
pub fn document(study: &Study, measured: &[MeasuredSetting], failures: &[String]) -> Document {
    let mut document = Document::with_title(format!("Study: {}", study.name));
    if !study.about.is_empty() {
        document.paragraph(study.about.clone());
    }
    document.table(tables::settings(measured));
    document.paragraph("Numbers are medians over a setting's runs, without warm-up steps.");
    if !failures.is_empty() {
        document.heading("Failed");
        document.list(failures.to_vec());
    }
    conclusions::write_conclusions(&mut document, study, measured);
    numbers(&mut document, measured);
    pictures::figures(&mut document, study, measured);
    conclusions::publications(&mut document, study, measured);
    for one in measured {
        if let Some(report) = &one.report {
            document.heading(format!("{}: its last run", one.setting.name));
            document.paragraph(format!("{}.", report.verdict));
            document.list(report.findings.found.iter().map(|finding| finding.summary.clone()).collect());
            document.pictures(report);
        }
    }
    document
}

/// All that is measured, a table a subject.
fn numbers(document: &mut Document, measured: &[MeasuredSetting]) {
    document.heading("Time");
    document.table(tables::columns(measured, &tables::named_columns(&tables::TIMES)));
    document.paragraph(WORDS);
    tables::spread(document, measured);
    document.heading("Shares of the wall time");
    document.table(tables::shares(measured));
    document.heading("Batches and spikes");
    document.table(tables::columns(measured, &tables::named_columns(&tables::BATCHES)));
    document.heading("Memory and processor");
    document.table(tables::columns(measured, &tables::named_columns(&tables::MEMORY)));
    tables::memory_by_phase(document, measured);
    tables::energy(document, measured);
    tables::program_counters(document, measured);
    tables::compare_with_first(document, measured);
}
