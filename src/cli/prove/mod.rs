//! `gnntop prove`: runs two programs in turn until chance alone cannot explain which is faster.
//!
//! ```text
//! arguments ─▶ sides: two commands ─▶ pairs: run, recorded and measured in turn ─▶ comparison::prove ─▶ card
//! ```

mod arguments;
mod card;
mod pairs;
mod sides;

use super::exit::{REGRESSED, SUCCESS, UNDECIDED};
use super::{new_file, output, signals};
use card::ResultCard;
use gnntop_analysis::comparison::Proof;
use pairs::Pairs;
use sides::Sides;

pub(super) use arguments::ProveArguments;

/// Does `gnntop prove`.
pub(super) fn prove(arguments: &ProveArguments) -> anyhow::Result<u8> {
    let sides = Sides::new(arguments)?;
    let mut pairs = Pairs::new(&sides, arguments.pairs, arguments.within, arguments.keep.as_deref())?;
    let (proven, losses) = match pairs.run()? {
        pairs::Ended::Proven(proven, losses) => (proven, losses),
        pairs::Ended::Interrupted(signal) => return Ok(signals::exit_code(signal)),
    };
    let card = ResultCard {
        sides: &sides,
        within: arguments.within,
        pairs: pairs.measured(),
        again: pairs.again(),
        proven: &proven,
        losses,
    };
    if let Some(path) = &arguments.output {
        new_file::write(path, &card.to_markdown(), arguments.force, &[])?;
    }
    output::print(
        if arguments.json { serde_json::to_string_pretty(&card.to_json())? } else { card.to_text() }.trim_end(),
    )?;
    Ok(match proven.proof {
        Proof::Faster => SUCCESS,
        Proof::Slower | Proof::NoDifference => REGRESSED,
        Proof::NotEnough => UNDECIDED,
    })
}
