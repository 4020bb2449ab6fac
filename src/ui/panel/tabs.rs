//! The row of views: which key shows which, and which one this is. With less room names get shorter, then only that of
//! the current view is left.
//!
//! ```text
//!  1 overview ▌2 steps  3 latency  4 memory  5 hardware  6 energy  7 tracks  8 findings  9 compare  R ranks
//! ```

use std::ops::Range;

use crate::app::{Target, View};
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, width};

/// The order in which names are shortened: the longest first, what people look for first last.
const SHORTENED: [View; 11] = [
    View::Hardware,
    View::Memory,
    View::Findings,
    View::Compare,
    View::Latency,
    View::Overview,
    View::Tracks,
    View::Energy,
    View::Steps,
    View::Ranks,
    View::Pipeline,
];

/// The order in which they are left out where short ones do not fit either.
const BARE: [View; 8] = [
    View::Compare,
    View::Energy,
    View::Tracks,
    View::Latency,
    View::Memory,
    View::Pipeline,
    View::Hardware,
    View::Steps,
];

/// A view's place in the row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tab {
    /// The view.
    pub view: View,
    /// Its columns, with the one for the mark before it.
    pub columns: Range<u16>,
    name: &'static str,
}

/// All views that are offered in a row of this many columns, while `current` is shown. Where even their keys do not fit,
/// fewer.
pub fn tabs(columns: u16, current: View, offered: impl Fn(View) -> bool) -> Vec<Tab> {
    let views: Vec<View> = View::MAIN.into_iter().filter(|view| offered(*view)).collect();
    let names = names(&views, columns, current);
    let wanted = row_width(&names);
    // With plenty of room they are further apart.
    let apart = u16::from(columns >= wanted + names.len() as u16);
    let mut x = 0;
    let place = |(view, name): (View, &'static str)| {
        let end = x + tab_width(name);
        let tab = Tab { view, columns: x..end, name };
        x = end + apart;
        (end <= columns).then_some(tab)
    };
    views.into_iter().zip(names).map_while(place).collect()
}

/// The longest names that fit.
fn names(views: &[View], columns: u16, current: View) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = views.iter().map(|view| view.name()).collect();
    for shortened in SHORTENED {
        if row_width(&names) <= columns {
            return names;
        }
        if let Some(at) = views.iter().position(|view| *view == shortened) {
            names[at] = shortened.short_name();
        }
    }
    for bare in BARE {
        if row_width(&names) <= columns {
            return names;
        }
        if let Some(at) = views.iter().position(|view| *view == bare && *view != current) {
            names[at] = "";
        }
    }
    for name in [View::name, View::short_name] {
        if row_width(&names) > columns {
            names = views.iter().map(|view| if *view == current { name(*view) } else { "" }).collect();
        }
    }
    names
}

fn row_width(names: &[&str]) -> u16 {
    names.iter().map(|name| tab_width(name)).sum()
}

/// Columns of mark, digit, space and name.
fn tab_width(name: &str) -> u16 {
    if name.is_empty() { 2 } else { 3 + width(name) }
}

/// Draws the row.
pub fn draw(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let theme = scene.theme;
    let current = scene.app.main_view();
    for Tab { view, columns, name } in tabs(sheet.width(), current, |view| scene.app.offers(view)) {
        sheet.offer(columns.start, 0, columns.end - columns.start, 1, Target::View(view));
        let is_current = view == current;
        if is_current {
            sheet.cell(columns.start, 0, theme.glyph('▌', '>'), theme.accent());
        }
        let key = view.key().unwrap_or(' ');
        sheet.cell(columns.start + 1, 0, key, theme.accent());
        let style = if is_current { theme.strong() } else { theme.dim() };
        sheet.text(columns.start + 3, 0, name, style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tabs_fit_every_width_and_never_touch() {
        for columns in 0..200 {
            for (current, ranks) in View::MAIN.into_iter().flat_map(|view| [(view, true), (view, view.is_of_ranks())]) {
                let tabs = tabs(columns, current, |view| ranks || !view.is_of_ranks());
                assert!(tabs.windows(2).all(|pair| pair[0].columns.end <= pair[1].columns.start));
                assert!(tabs.last().is_none_or(|last| last.columns.end <= columns));
                assert!(columns < 30 || tabs.len() == 9 + 2 * usize::from(ranks), "{columns}");
                assert!(columns < 30 || tabs.iter().any(|tab| tab.view == current && !tab.name.is_empty()));
            }
        }
    }

    #[test]
    fn tab_names_are_whole_where_they_fit() {
        assert!(tabs(90, View::Overview, |view| !view.is_of_ranks()).iter().all(|tab| tab.name == tab.view.name()));
        assert!(tabs(60, View::Overview, |view| !view.is_of_ranks()).iter().all(|tab| !tab.name.is_empty()));
    }
}
