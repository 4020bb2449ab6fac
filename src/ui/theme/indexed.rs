//! Colours of terminals that have 256 of them.

use ratatui::style::Color;

/// Levels of the three colours in the cube of the 256.
const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// The nearest of the 6 x 6 x 6 colours of the 256 (16..232) and their greys (232..256).
pub(super) fn nearest((r, g, b): (u8, u8, u8)) -> Color {
    let level = |c: u8| (0..6u8).min_by_key(|&i| LEVELS[usize::from(i)].abs_diff(c)).unwrap_or(0);
    let grey = (0..24u8).min_by_key(|&i| (8 + 10 * i).abs_diff(g)).unwrap_or(0);
    let cube = 16 + 36 * level(r) + 6 * level(g) + level(b);
    let away = |index: u8| {
        let (r2, g2, b2) = rgb_of_index(index);
        [(r, r2), (g, g2), (b, b2)].map(|(a, b)| u32::from(a.abs_diff(b)).pow(2)).iter().sum::<u32>()
    };
    Color::Indexed(if away(232 + grey) < away(cube) { 232 + grey } else { cube })
}

/// Red, green and blue of an indexed colour from 16 on, as xterm has them.
pub fn rgb_of_index(index: u8) -> (u8, u8, u8) {
    let level = |i: u8| LEVELS[usize::from(i % 6)];
    match index {
        232.. => {
            let grey = 8 + 10 * (index - 232);
            (grey, grey, grey)
        }
        _ => {
            let cube = index.saturating_sub(16);
            (level(cube / 36), level(cube / 6), level(cube))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_the_256_is_nearest_to_itself() {
        for index in 16..=255u8 {
            let Color::Indexed(found) = nearest(rgb_of_index(index)) else { panic!("{index}") };
            assert_eq!(rgb_of_index(found), rgb_of_index(index), "{index}");
        }
    }
}
