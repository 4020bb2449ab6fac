//! Figures as CSV: one a line, with its recording, value, unit, bounds and what it is over, for a sheet or a plot.

use gnntop_analysis::catalogue::{FigureId, Measured};

const HEAD: &str = "recording,figure,value,unit,low,high,over\n";

/// The figures of recordings, by the names of these, under one head. What was not measured has no line.
pub fn to_csv(recordings: &[(String, Vec<(FigureId, Measured)>)]) -> String {
    let figures = recordings.iter().flat_map(|(name, figures)| figures.iter().map(move |figure| (name, figure)));
    let lines = figures.map(|(recording, (figure, measured))| {
        let Measured { value, unit, interval, population } = measured;
        let bound =
            |bound: Option<f64>| bound.filter(|bound| bound.is_finite()).map_or_else(String::new, |n| n.to_string());
        let (low, high) = (bound(interval.map(|(low, _)| low)), bound(interval.map(|(_, high)| high)));
        let (figure, over) = (figure.to_string(), population.to_string());
        let texts = [recording, &figure, &value.to_string(), unit.symbol(), &low, &high, &over].map(quoted);
        texts.join(",") + "\n"
    });
    HEAD.to_owned() + &lines.collect::<String>()
}

/// The text as a cell. What a sheet would take for a formula gets an apostrophe before it.
fn quoted(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let is_formula = clean.starts_with(['=', '+', '-', '@']) && clean.parse::<f64>().is_err();
    let clean = if is_formula { format!("'{clean}") } else { clean };
    if clean.contains([',', '"']) { format!("\"{}\"", clean.replace('"', "\"\"")) } else { clean }
}
