//! How fast a session goes, from small pieces of its segments.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::time::Duration;

use gnntop_sessions::SessionDir;
use gnntop_wire::Step;

use crate::source::latest::{Latest, NewestStep, steps_in};

/// Bytes of a piece that are read first, and where these have too few steps.
const PIECE_LEN: u64 = 48 * 1024;
const LONG_PIECE_LEN: u64 = 256 * 1024;
/// Steps of the newest piece over which the pace is taken: those that ended within this time...
const NOW: Duration = Duration::from_secs(10);
/// ...or at least this many.
const FEWEST: usize = 3;
/// Places in all that the segments keep, the newest included, whose pace is looked at to know the usual one.
const PLACES: u64 = 4;

/// How far a session is and how fast it goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Pace {
    newest: NewestStep,
    /// Steps a second over the last 10 s of steps; `None` where only one is known.
    pub steps_per_s: Option<f64>,
}

impl Pace {
    /// Reads it from the end of the newest segment; `None` if there is no step.
    pub(super) fn read(session: &SessionDir) -> Option<Self> {
        let piece = |len| Self::from_steps(steps_in(&session.tail(len).ok()?));
        piece(PIECE_LEN).filter(|pace| pace.steps_per_s.is_some()).or_else(|| piece(LONG_PIECE_LEN))
    }

    fn from_steps(mut steps: Vec<Step>) -> Option<Self> {
        let newest = NewestStep::from_steps(&steps)?;
        steps.sort_by_key(|step| step.end_ns);
        let since_ns = steps.last()?.end_ns.saturating_sub(NOW.as_nanos() as u64);
        let recent = steps.iter().filter(|step| step.end_ns >= since_ns).count().max(FEWEST).min(steps.len());
        Some(Self { newest, steps_per_s: rate(&steps[steps.len() - recent..]) })
    }

    /// The newest step, and how long ago it ended by this clock if that is long for this program.
    pub(super) fn latest(&self, now_ns: u64) -> Latest {
        self.newest.at(now_ns)
    }
}

/// Steps a second that are usual for a session: the median over a few places in all that its segments keep.
pub(super) fn usual_steps_per_s(session: &SessionDir) -> Option<f64> {
    let mut segments: Vec<(File, u64)> = Vec::new();
    for number in session.segments().ok()? {
        let file = session.segment(number).ok()?;
        let len = file.metadata().ok()?.len();
        segments.push((file, len));
    }
    let total: u64 = segments.iter().map(|(_, len)| len).sum();
    let places = (1..=PLACES).map(|place| (u128::from(total) * u128::from(place) / u128::from(PLACES)) as u64);
    let mut rates: Vec<f64> = places.filter_map(|end| rate(&steps_in(&piece_before(&mut segments, end)?))).collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied()
}

/// A piece that ends at this place in all segments, as if they were one file; within one segment.
fn piece_before(segments: &mut [(File, u64)], end: u64) -> Option<Vec<u8>> {
    let mut left = end;
    for (file, len) in segments {
        if left <= *len {
            let mut piece = Vec::new();
            file.seek(SeekFrom::Start(left.saturating_sub(PIECE_LEN))).ok()?;
            file.take(PIECE_LEN.min(left)).read_to_end(&mut piece).ok()?;
            return Some(piece);
        }
        left -= *len;
    }
    None
}

/// Steps a second from the first step's end to the last one's.
fn rate(steps: &[Step]) -> Option<f64> {
    let ends = || steps.iter().map(|step| step.end_ns);
    let ns = ends().max()?.checked_sub(ends().min()?).filter(|ns| *ns > 0)?;
    Some((steps.len() - 1) as f64 * 1e9 / ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::fixture::{START_NS, STEP_NS, SessionDir as Written, segment, steps};

    fn open(written: &Written) -> SessionDir {
        SessionDir::open(written.path()).unwrap()
    }

    fn written(dir: &std::path::Path, count: u64) -> Written {
        let session = Written::create(dir, "pna", 7);
        session.write_segment(0, &[segment("pna", 7, 0), steps(0..count)].concat());
        session
    }

    #[test]
    fn pace_is_of_the_newest_steps() {
        let dir = tempfile::tempdir().unwrap();
        let session = written(dir.path(), 40);
        let pace = Pace::read(&open(&session)).unwrap();
        assert_eq!(pace.steps_per_s.map(f64::round), Some(100.0));
        let after = |seconds: u64| pace.latest(START_NS + 40 * STEP_NS + seconds * 1_000_000_000);
        assert_eq!(after(1), Latest { step: 40, still: None });
        assert_eq!(after(12), Latest { step: 40, still: Some(Duration::from_secs(12)) });
        assert_eq!(Pace::from_steps(Vec::new()), None);
    }

    #[test]
    fn one_step_has_no_pace() {
        let dir = tempfile::tempdir().unwrap();
        let session = written(dir.path(), 1);
        let pace = Pace::read(&open(&session)).unwrap();
        assert_eq!((pace.latest(0).step, pace.steps_per_s), (1, None));
        assert_eq!(usual_steps_per_s(&open(&session)), None);
    }

    #[test]
    fn usual_pace_is_from_all_segments() {
        let dir = tempfile::tempdir().unwrap();
        let session = Written::create(dir.path(), "pna", 7);
        // Most of the run is fast: 100 steps a second. Its end is slow: one in 100 ms.
        let fast = (0..40).flat_map(|block| steps(block * 500..(block + 1) * 500)).collect::<Vec<u8>>();
        session.write_segment(0, &[segment("pna", 7, 0), fast].concat());
        let slow = (2001..2011).flat_map(|tenth| steps(tenth * 10..tenth * 10 + 1)).collect::<Vec<u8>>();
        session.write_segment(1, &[segment("pna", 7, 1), slow].concat());
        let now = Pace::read(&open(&session)).unwrap().steps_per_s.map(f64::round);
        assert_eq!((now, usual_steps_per_s(&open(&session)).map(f64::round)), (Some(10.0), Some(100.0)));
    }
}
