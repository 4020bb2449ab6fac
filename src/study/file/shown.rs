//! The parts of a study's file that change no run: published values, published conclusions, and figures to draw. Mistakes in
//! them, as in the rest of the file, have their place.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;

use gnntop_analysis::catalogue::{FigureError, FigureId};

use crate::study::plan::FigurePlan;
use crate::study::published::{Claim, Expected, Published, Subject};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct WrittenPublished {
    what: String,
    measure: Spanned<String>,
    unit: String,
    source: String,
    #[serde(default)]
    placeholder: bool,
    values: BTreeMap<Spanned<String>, Spanned<f64>>,
}

/// A published conclusion.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct WrittenClaim {
    says: String,
    #[serde(default)]
    note: String,
    first: WrittenSubject,
    second: WrittenSubject,
    expect: Expected,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenSubject {
    setting: Spanned<String>,
    measure: Spanned<String>,
}

/// Bars to draw.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct WrittenFigure {
    what: String,
    measures: Spanned<Vec<String>>,
    settings: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    stacked: bool,
}

pub(super) fn parse_published(written: WrittenPublished, known: &BTreeSet<&str>) -> Result<Published, FileMistake> {
    let measure = parse_measure(&written.measure, written.measure.get_ref())?;
    if written.values.is_empty() {
        return Err(FileMistake::at(&written.measure, "give values with the names of settings"));
    }
    for (setting, value) in &written.values {
        check_setting(setting, setting.get_ref(), known)?;
        if !value.get_ref().is_finite() || *value.get_ref() <= 0.0 {
            return Err(FileMistake::at(value, "a published value must be above 0, since ratios are compared"));
        }
    }
    let values = written.values.into_iter().map(|(setting, value)| (setting.into_inner(), value.into_inner()));
    Ok(Published {
        what: written.what,
        measure,
        unit: written.unit,
        source: written.source,
        is_placeholder: written.placeholder,
        values: values.collect(),
    })
}

pub(super) fn parse_claim(written: WrittenClaim, known: &BTreeSet<&str>) -> Result<Claim, FileMistake> {
    let (first, second) = (parse_subject(&written.first, known)?, parse_subject(&written.second, known)?);
    if first.measure.unit() != second.measure.unit() {
        let what = format!("{} and {} cannot be compared", first.measure, second.measure);
        return Err(FileMistake::at(&written.second.measure, what));
    }
    Ok(Claim { says: written.says, note: written.note, first, second, expected: written.expect })
}

fn parse_subject(written: &WrittenSubject, known: &BTreeSet<&str>) -> Result<Subject, FileMistake> {
    let measure = parse_measure(&written.measure, written.measure.get_ref())?;
    check_setting(&written.setting, written.setting.get_ref(), known)?;
    Ok(Subject { setting: written.setting.get_ref().clone(), measure })
}

pub(super) fn parse_figure(written: WrittenFigure, known: &BTreeSet<&str>) -> Result<FigurePlan, FileMistake> {
    let place = &written.measures;
    let parsed = place.get_ref().iter().map(|text| parse_measure(place, text));
    let measures = parsed.collect::<Result<Vec<FigureId>, FileMistake>>()?;
    let Some(unit) = measures.first().map(FigureId::unit) else {
        return Err(FileMistake::at(place, "name at least one measure to draw"));
    };
    if let Some(other) = measures.iter().find(|measure| measure.unit() != unit) {
        return Err(FileMistake::at(place, format!("{other} has another unit than the first: make two figures")));
    }
    if let Some(settings) = &written.settings {
        settings.get_ref().iter().try_for_each(|setting| check_setting(settings, setting, known))?;
    }
    Ok(FigurePlan {
        what: written.what,
        measures,
        settings: written.settings.map(Spanned::into_inner),
        is_stacked: written.stacked,
    })
}

fn parse_measure<T>(place: &Spanned<T>, text: &str) -> Result<FigureId, FileMistake> {
    text.parse().map_err(|error: FigureError| FileMistake::at(place, error.to_string()))
}

fn check_setting<T>(place: &Spanned<T>, setting: &str, known: &BTreeSet<&str>) -> Result<(), FileMistake> {
    if known.contains(setting) { Ok(()) } else { Err(FileMistake::at(place, unknown_setting(setting, known))) }
}

/// A study's file cannot be understood.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line}: {what}")]
pub struct FileError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong and what to write instead.
    pub what: String,
}

/// Something wrong at this byte.
pub(super) struct FileMistake {
    pub at: usize,
    pub what: String,
}

impl FileMistake {
    pub fn at<T>(place: &Spanned<T>, what: impl Into<String>) -> Self {
        Self { at: place.span().start, what: what.into() }
    }
}

pub(super) fn unknown_setting(name: &str, known: &BTreeSet<&str>) -> String {
    let known: Vec<&str> = known.iter().copied().collect();
    format!("there is no setting {name}; settings are: {}", known.join("; "))
}
