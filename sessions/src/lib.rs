//! The one place that touches the files of sessions: where they are, what they are called, who may write them, which
//! of them are live, and when they go.
//!
//! A directory of sessions may be in a place that everyone can write to. [`PrivateDir`] proves by its type that a
//! directory is this user's own; files are opened, created, replaced and removed only through it, by name.
//!
//! # Promises
//! Each has a test of the same name in `tests/promises.rs`, or in `tests/copies.rs`.
//!
//! | promise | how |
//! |---|---|
//! | `never_follows_a_link` | `O_NOFOLLOW` on every open, and no slash at the end of a directory's path |
//! | `never_waits_for_a_pipe` | `O_NONBLOCK` on every open |
//! | `opens_only_regular_files` | `fstat` of what was opened |
//! | `opens_only_what_is_mine` | the owner of every directory and file, by `fstat` of what was opened |
//! | `refuses_a_directory_that_others_can_write_to` | its mode, by `fstat` of what was opened |
//! | `never_leaves_its_directory` | entries are named, not reached by paths, and looked up in the open directory |
//! | `creates_for_this_user_alone` | mode 0700 for directories, 0600 for files, from the start |
//! | `never_overwrites_what_it_creates` | `O_EXCL` |
//! | `replaces_whole_or_not_at_all` | written under another name, then renamed |
//! | `is_live_as_long_as_its_lock_is_held` | `flock`, which ends with the process however it ends |
//! | `takes_the_lock_from_no_one` | looking is a shared lock, which others who look do not see |
//! | `a_forked_child_keeps_no_session_alive` | a mapping that no child gets holds the lock |
//! | `a_program_that_closes_all_descriptors_leaves_its_session_alive` | the mapping needs none |
//! | `uses_no_number_that_the_program_has_taken` | [`HeldFile`] asks what a number opens before each use |
//! | `reports_a_full_disk_in_reserved_room` | the lock file has its length from the start |
//! | `copies_are_whole_after_each_change` | what refers to something comes after it, and before what it replaces goes |
//! | `a_copy_takes_only_a_sessions_files` | names, offsets and sizes are checked, since another machine sends them |
//! | `a_copy_lives_as_long_as_it_is_heard_of` | a [`Heartbeat`] in place of a lock |
//! | `asks_one_request_at_a_time` | the file of a request is locked for as long as somebody waits |
//! | `writes_into_no_session_that_is_live` | only its publisher writes; a reason of death is added once the lock is free |
//! | `knows_who_ended_well` | the last segment ends with the end of the stream, and no reason of death follows |
//! | `removes_nothing_live` | the lock is tried before anything is removed, and held until everything is |
//! | `removes_nothing_that_is_not_a_sessions` | every name must be one of [`layout`] and every entry a file of this user |
//! | `removes_nothing_under_another_name` | the name must be the one that the first segment gives |
//! | `removes_nothing_that_is_about_to_begin` | a session without a segment must have been left alone for a minute |
//!
//! Trusted are the directories above: anyone who may rename them decides where sessions are.

#![cfg_attr(windows, allow(dead_code, reason = "no program publishes a session there"))]

pub mod copy;
pub mod discover;
mod ended;
mod error;
mod heartbeat;
#[cfg(unix)]
mod held_file;
pub mod layout;
#[cfg(unix)]
mod limits;
#[cfg(unix)]
mod live_lock;
mod platform;
mod private_dir;
mod publisher;
mod removal;
pub mod request;
mod session_dir;
pub mod user_file;

pub use error::Error;
pub use heartbeat::{BEAT_INTERVAL, Heartbeat};
#[cfg(unix)]
pub use held_file::{HeldFile, Identity, NamedDir, has_few_numbers};
#[cfg(unix)]
pub use limits::Limit;
#[cfg(unix)]
pub use live_lock::LiveLock;
pub use platform::user_id;
pub use private_dir::PrivateDir;
pub use publisher::{CopyState, Publisher, Stopped};
pub use removal::{Candidates, IdleSession, Removal};
pub use session_dir::{SessionDir, append_to_ended};
