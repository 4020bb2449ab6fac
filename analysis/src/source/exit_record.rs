//! What a program's keeper adds to its session after the program's end: why it died, or that it ended well, where the program
//! itself could not say that. It comes after everything else in the newest segment, and readers take it like any other item.

use std::path::Path;

use gnntop_sensors::monotonic_ns;
use gnntop_sessions::{Error, SessionDir, append_to_ended};
use gnntop_wire::{Definition, End, Fact, Item, MAX_TEXT_LEN, StreamReader, put_definitions, put_end};

/// Bytes at the end of a session that are searched for it.
const TAIL_LEN: u64 = 4 * MAX_TEXT_LEN as u64;

/// The fact that says why a program died: a paragraph, and the cause as a keyword.
pub fn fact(text: &str, cause: &str) -> Definition {
    Definition::Fact(Fact::Died { cause: cause.to_owned(), text: text.to_owned() })
}

/// Adds the reason for the program's death to the session in `dir`. No one else may write there any more.
///
/// # Errors
/// If the session has no segment, is still live, or cannot be written.
pub fn add(dir: &Path, text: &str, cause: &str) -> Result<(), Error> {
    let mut frame = Vec::new();
    put_definitions(&mut frame, [&fact(text, cause)]);
    append_to_ended(dir, &frame)
}

/// Adds to the session in `dir` that its program has ended well, and how, unless it says so itself: `os._exit` and `exec` leave it
/// no time for that.
///
/// # Errors
/// As for [`add`].
pub fn add_end(dir: &Path, how: &str) -> Result<(), Error> {
    let has_end = |item: Item<'_>| matches!(item, Item::End(_)).then_some(());
    if last(dir, has_end).is_some() {
        return Ok(());
    }
    let mut frame = Vec::new();
    put_end(&mut frame, &End { t_ns: monotonic_ns(), reason: how.to_owned() });
    append_to_ended(dir, &frame)
}

/// Why the program of the session in `dir` died, if that was added.
pub fn read(dir: &Path) -> Option<String> {
    last(dir, |item| match item {
        Item::Definitions(definitions) => definitions.into_iter().find_map(death_text),
        _ => None,
    })
}

/// What `find` finds last in the end of the session in `dir`.
fn last<T>(dir: &Path, find: impl Fn(Item<'_>) -> Option<T>) -> Option<T> {
    let tail = SessionDir::open(dir).ok()?.tail(TAIL_LEN).ok()?;
    let mut reader = StreamReader::new();
    reader.fill(&tail);
    reader.finish();
    let mut found = None;
    while let Some(item) = reader.next() {
        found = find(item).or(found);
    }
    found
}

fn death_text(definition: Definition) -> Option<String> {
    match definition {
        Definition::Fact(Fact::Died { text, .. }) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, SessionDir};
    use super::*;

    #[test]
    fn exit_record_only_for_ended_session() {
        let dir = tempfile::tempdir().unwrap();
        let session = SessionDir::create(dir.path(), "pna", 7);
        assert!(add(session.path(), "x", "killed").is_err(), "there is no segment");
        session.write_segment(0, &[fixture::segment("pna", 7, 0), fixture::steps(0..500)].concat());
        assert_eq!(read(session.path()), None);
        let lock = session.lock();
        assert!(add(session.path(), "x", "killed").is_err(), "it lives");
        drop(lock);
        let long = "a sentence. ".repeat(80);
        add(session.path(), &long, "killed").unwrap();
        assert_eq!(read(session.path()).as_deref().map(str::trim), Some(long.trim()));
    }
    #[test]
    fn end_is_added_once_and_only_where_the_program_said_none() {
        use super::super::polling::{Source, SourceState};
        let dir = tempfile::tempdir().unwrap();
        let session = SessionDir::create(dir.path(), "pna", 7);
        session.write_segment(0, &[fixture::segment("pna", 7, 0), fixture::steps(0..500)].concat());
        let end = || {
            let mut live = super::super::live::Live::follow(session.path());
            live.poll(&mut fixture::CollectedItems::default(), std::time::Duration::from_secs(60));
            live.status().state
        };
        assert_eq!(end(), SourceState::Ended("ended unexpectedly: killed?".to_owned()));
        add_end(session.path(), "exit code 0").unwrap();
        add_end(session.path(), "again").unwrap();
        assert_eq!(end(), SourceState::Ended("ended: exit code 0".to_owned()));
    }
}
