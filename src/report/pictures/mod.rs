//! What the pictures of sections are made of, as HTML and SVG. Drawings stretch with the page and text does not; colours
//! are classes of the page's style, so that they follow light and dark.

pub(in crate::report) mod bars;
pub(in crate::report) mod flames;
pub(in crate::report) mod plot;
pub(in crate::report) mod shares;
