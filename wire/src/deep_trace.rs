//! How `gnntop trace` asks a running program for a deep trace, and how the program answers: two small files in the session's
//! directory. The asker writes the request; removing it withdraws it. The program replaces its answer as it proceeds.
//!
//! ```text
//! request   trace ID STEPS
//! answer    ID began STEP              tracing from this step on
//!           ID done FIRST LAST SPANS   `trace.json` is complete; SPANS of its spans are in the stream
//!           ID failed WHY
//! ```

use std::fmt;

/// Text of the mark at the start of each step that a deep trace slows down. Percentiles leave these steps out.
pub const MARK: &str = "deep trace";
/// Most steps that may be asked for: torch keeps every operator of them in memory until the end.
pub const MOST_STEPS: u32 = 100;

/// A request for a deep trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Differs from those of earlier requests.
    pub id: u64,
    /// Number of whole steps to trace.
    pub steps: u32,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "trace {:016x} {}", self.id, self.steps)
    }
}

/// How far a program has got with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It traces from this step on.
    Began {
        /// Number of the first step.
        step: u64,
    },
    /// The trace has been written.
    Done {
        /// Number of the first step.
        first: u64,
        /// Number of the last step.
        last: u64,
        /// Spans of the trace that are also in the session's stream.
        spans: u64,
    },
    /// It could not be done.
    Failed {
        /// Why.
        why: String,
    },
}

impl Answer {
    /// Reads an answer; `None` if it is not an answer to this request, or not yet complete.
    pub fn read(text: &str, request: &Request) -> Option<Self> {
        let line = text.strip_suffix('\n')?.strip_prefix(&format!("{:016x} ", request.id))?;
        let (kind, rest) = line.split_once(' ')?;
        let mut numbers = rest.split(' ').map(|number| number.parse().ok());
        match kind {
            "began" => Some(Self::Began { step: numbers.next()?? }),
            "done" => {
                let (first, last, spans) = (numbers.next()??, numbers.next()??, numbers.next()??);
                Some(Self::Done { first, last, spans })
            }
            "failed" => Some(Self::Failed { why: crate::text::clean(rest.as_bytes()) }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_answers_go_both_ways() {
        let request = Request { id: 0x5f, steps: 5 };
        assert_eq!(request.to_string(), "trace 000000000000005f 5\n");
        let read = |text: &str| Answer::read(text, &request);
        assert_eq!(read("000000000000005f began 812\n"), Some(Answer::Began { step: 812 }));
        assert_eq!(
            read("000000000000005f done 812 816 9000\n"),
            Some(Answer::Done { first: 812, last: 816, spans: 9000 })
        );
        let failed = read("000000000000005f failed RuntimeError: a profiler \u{1b}[31mruns\n");
        assert!(
            matches!(failed, Some(Answer::Failed { why }) if why.starts_with("RuntimeError") && !why.contains('\u{1b}'))
        );
    }

    #[test]
    fn anything_else_is_no_answer() {
        let request = Request { id: 0x5f, steps: 5 };
        for text in [
            "",
            "000000000000005f began 812",
            "000000000000005e began 812\n",
            "000000000000005f began\n",
            "000000000000005f began x\n",
            "000000000000005f done 1 2\n",
            "000000000000005f other 1\n",
        ] {
            assert_eq!(Answer::read(text, &request), None, "{text}");
        }
    }
}
