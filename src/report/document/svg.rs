//! What all figures share: their size, their colours, and how a picture begins.

/// Size of a figure, in its own units.
pub(in crate::report) const WIDTH: f64 = 760.0;
pub(in crate::report) const HEIGHT: f64 = 180.0;
/// Room for the scale.
pub(in crate::report) const LEFT: f64 = 64.0;
/// Colours of phases in the order in which they are shown; ColorBrewer's Set2 and Dark2, which print apart.
pub(in crate::report) const COLOURS: [&str; 9] =
    ["#66c2a5", "#1b9e77", "#7570b3", "#d95f02", "#8da0cb", "#e78ac3", "#a6d854", "#ffd92f", "#e5c494"];
/// Colour of the gap.
pub(in crate::report) const GREY: &str = "#b3b3b3";

/// The begin of a picture; `title` is written as it is.
pub(in crate::report) fn open(title: &str, height: f64) -> String {
    format!(
        r#"<svg viewBox="0 0 {WIDTH} {height}" role="img" xmlns="http://www.w3.org/2000/svg"><title>{title}</title>"#
    )
}
