//! Commands that need Linux, on systems that lack what they use: each says so, and what works there. The modules have the names that
//! they have on Linux, and what other commands take from them.

use super::exit::UsageError;

/// An error which says that this needs Linux.
fn needs_linux<T>(what: &str) -> anyhow::Result<T> {
    Err(UsageError::with_message(format!(
        "{what} needs Linux. Here gnntop reads recordings and copied sessions: replay, report, compare, check, export, import, list, \
         top and demo"
    )))
}

/// The arguments of a command, which may be anything, and the function that does it.
macro_rules! command {
    ($name:expr, $Arguments:ident, $function:ident) => {
        /// Needs Linux
        #[derive(Debug, clap::Args)]
        #[command(
                    disable_help_flag = true,
                    after_help = concat!("`gnntop ", $name, "` needs Linux; docs/platforms.md says what works here.")
                )]
        pub(in super::super) struct $Arguments {
            /// Whatever it is given
            #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
            words: Vec<std::ffi::OsString>,
        }

        /// Says that it needs Linux.
        ///
        /// # Errors
        /// Always.
        pub(in super::super) fn $function(_: impl std::borrow::Borrow<$Arguments>) -> anyhow::Result<u8> {
            super::needs_linux(concat!("`gnntop ", $name, "`"))
        }
    };
}

/// Modules with one command each, of the same name.
macro_rules! commands {
    ($($module:ident: $Arguments:ident;)+) => {$(
        pub(super) mod $module {
            command!{ stringify!($module), $Arguments, $module }
        }
    )+};
}

commands! {
    clean: CleanArguments;
    doctor: DoctorArguments;
    env: EnvArguments;
    mcp: McpArguments;
    prove: ProveArguments;
    push: PushArguments;
    record: RecordArguments;
    serve: ServeArguments;
    share: ShareArguments;
    stop: StopArguments;
    study: StudyArguments;
    trace: TraceArguments;
    train: TrainArguments;
    watch: WatchArguments;
}

pub(super) mod attach {
    use super::super::exit::SUCCESS;
    use super::super::settings::{ScreenArguments, Settings};
    use super::super::{output, screen};

    command! { "attach", AttachArguments, attach }

    /// Does `gnntop` alone: offers the recordings of this directory and the copied sessions.
    pub(in super::super) fn choose(arguments: &ScreenArguments) -> anyhow::Result<u8> {
        let settings = Settings::load(arguments)?;
        if screen::is_wanted(&settings) && !screen::catalog().entries()?.is_empty() {
            return screen::choose(&settings);
        }
        output::print("No recordings here. Play one with `gnntop replay FILE`, see `gnntop demo` or `gnntop --help`.")?;
        Ok(SUCCESS)
    }
}

pub(super) mod far {
    use std::ffi::OsString;

    command! { "send", SendArguments, send }
    command! { "job-dir", JobDirArguments, job_dir }

    /// Refuses addresses of other machines; `None` if there is none among these words.
    pub(in super::super) fn run(words: &[OsString]) -> Option<anyhow::Result<u8>> {
        let is_address = |word: &&str| ["ssh:", "slurm:"].iter().any(|kind| word.starts_with(kind));
        let address = words.iter().filter_map(|word| word.to_str()).find(is_address)?;
        Some(super::needs_linux(&format!("{address}, a session of another machine,")))
    }
}

pub(super) mod run {
    use gnntop_sessions::discover::ListedSession;

    command! { "run", RunArguments, run }
    command! { "keep", KeepArguments, keep }
    command! { "collect", CollectArguments, collect }

    /// A program that `gnntop run` keeps: there is none.
    #[derive(Clone, Debug)]
    pub(in super::super) struct ProgramEntry {
        pub(in super::super) name: String,
        pub(in super::super) program: u32,
        pub(in super::super) command: String,
        pub(in super::super) started_s: u64,
    }

    impl ProgramEntry {
        /// Its label in messages.
        pub(in super::super) fn label(&self) -> String {
            format!("{} (pid {})", self.name, self.program)
        }

        /// Where it runs, if that is not here.
        pub(in super::super) fn elsewhere(&self) -> Option<&'static str> {
            None
        }
    }

    /// Programs that are kept and publish nothing: none.
    pub(in super::super) fn unpublished(_: &[ListedSession]) -> Vec<ProgramEntry> {
        Vec::new()
    }
}
