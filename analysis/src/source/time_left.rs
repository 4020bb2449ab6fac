//! What a living session's way to its goal still takes, from small pieces of its segments: for lists, which read no session as a
//! whole. A [`Store`](crate::store::Store) that has read it all knows more.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::time::Duration;

use gnntop_sessions::SessionDir;
use gnntop_wire::{Definition, Fact, Goal, GoalUnit, Item, Step, StreamReader};

use super::latest::steps_in;

/// Bytes of the newest segment's beginning, where all facts are.
const HEAD_LEN: u64 = 64 * 1024;
/// Bytes of each piece in which steps are looked for.
const PIECE_LEN: u64 = 64 * 1024;
/// Steps from which a pace is known.
const FEWEST_STEPS: u64 = 5;

/// The time that the steps up to the goal take at the pace of the newer half of what the segments keep. `None` without a goal in
/// steps, or where that is not known. `is_restarted`: the run was started several times, so that its steps before are known only
/// where it says so.
pub fn time_left(session: &SessionDir, is_restarted: bool) -> Option<Duration> {
    let newest = *session.segments().ok()?.last()?;
    let mut head = Vec::new();
    session.segment(newest).ok()?.take(HEAD_LEN).read_to_end(&mut head).ok()?;
    let (goal, resumed) = goal_in(&head)?;
    let before = if is_restarted { resumed? } else { resumed.unwrap_or(0) };
    let last = newest_step(&session.tail(PIECE_LEN).ok()?)?;
    let middle = middle_step(session)?;
    let steps = last.step.0.checked_sub(middle.step.0).filter(|steps| *steps >= FEWEST_STEPS)?;
    let left = goal.checked_sub(before.saturating_add(last.step.0)).filter(|left| *left > 0)?;
    let pace_ns = last.end_ns.checked_sub(middle.end_ns)? as f64 / steps as f64;
    Some(Duration::from_nanos((pace_ns * left as f64) as u64))
}

/// The goal in steps, and the steps before a checkpoint, of the facts in the beginning of a segment.
fn goal_in(head: &[u8]) -> Option<(u64, Option<u64>)> {
    let mut reader = StreamReader::new();
    reader.fill(head);
    let (mut goal, mut resumed) = (None, None);
    while let Some(item) = reader.next() {
        let Item::Definitions(definitions) = item else { continue };
        for definition in definitions {
            match definition {
                Definition::Fact(Fact::Goal { goal: Goal { unit: GoalUnit::Steps, number }, .. }) => {
                    goal = Some(number)
                }
                Definition::Fact(Fact::Resumed { steps }) => resumed = Some(steps),
                _ => {}
            }
        }
    }
    Some((goal?, resumed))
}

fn newest_step(piece: &[u8]) -> Option<Step> {
    steps_in(piece).into_iter().max_by_key(|step| step.end_ns)
}

/// A step in the middle of what all segments keep, or the first one after it.
fn middle_step(session: &SessionDir) -> Option<Step> {
    let mut segments: Vec<(File, u64)> = Vec::new();
    for number in session.segments().ok()? {
        let file = session.segment(number).ok()?;
        let len = file.metadata().ok()?.len();
        segments.push((file, len));
    }
    let mut before = segments.iter().map(|(_, len)| len).sum::<u64>() / 2;
    for (file, len) in &mut segments {
        if before < *len {
            let mut piece = Vec::new();
            file.seek(SeekFrom::Start(before)).ok()?;
            file.take(PIECE_LEN).read_to_end(&mut piece).ok()?;
            if let Some(first) = steps_in(&piece).into_iter().min_by_key(|step| step.end_ns) {
                return Some(first);
            }
        }
        before = before.saturating_sub(*len);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::fixture::{SessionDir as Written, segment, steps};
    use gnntop_wire::put_definitions;

    fn left(facts: &[Fact], is_restarted: bool) -> Option<Duration> {
        let dir = tempfile::tempdir().unwrap();
        let session = Written::create(dir.path(), "pna", 7);
        let mut head = segment("pna", 7, 0);
        let facts: Vec<Definition> = facts.iter().cloned().map(Definition::Fact).collect();
        put_definitions(&mut head, &facts);
        let blocks = (0..10).flat_map(|block| steps(block * 10..(block + 1) * 10)).collect::<Vec<u8>>();
        session.write_segment(0, &[head, blocks].concat());
        time_left(&SessionDir::open(session.path()).unwrap(), is_restarted)
    }

    #[test]
    fn steps_left_take_what_steps_take() {
        let goal = |text: &str| Fact::Goal { goal: text.parse().unwrap(), by: String::new() };
        // Each step takes 10 ms, and 100 are done.
        assert_eq!(left(&[goal("300")], false), Some(Duration::from_secs(2)));
        assert_eq!(left(&[goal("300"), Fact::Resumed { steps: 150 }], true), Some(Duration::from_millis(500)));
        assert_eq!(left(&[goal("300")], true), None, "nobody knows what was done before");
        assert_eq!(left(&[goal("100")], false), None, "it is reached");
        assert_eq!(left(&[goal("10ep")], false), None);
        assert_eq!(left(&[], false), None);
    }
}
