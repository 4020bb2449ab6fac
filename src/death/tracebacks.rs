//! The tracebacks in a program's output, in each form that Python and its libraries print, and the lines of the program in them.

use super::exception::Exception;
use super::frames::{CodePlace, Frame};

/// How every traceback announces itself.
const HEADER: &str = "Traceback (most recent call last)";

/// Reads tracebacks line by line.
#[derive(Debug, Default)]
pub(super) struct Tracebacks {
    /// Those that are complete, in the order of their ends, with the number of their last line.
    pub(super) done: Vec<(usize, Exception)>,
    open: Vec<OpenTraceback>,
    /// What the last line of each rank says of a traceback after it.
    notices: Vec<(Option<u32>, Notice)>,
}

/// What Python prints in front of a traceback that ends no program.
#[derive(Clone, Debug, PartialEq)]
enum Notice {
    /// This thread has ended.
    Thread(String),
    /// Nobody was there to catch it, such as in `__del__`.
    Ignored,
}

/// The forms of tracebacks.
#[derive(Clone, Debug, PartialEq)]
enum Form {
    /// Python's own.
    Plain,
    /// Python's own for exceptions in a group, which has each of them after it, behind bars.
    Group,
    /// rich's, in a box.
    Boxed,
    /// Python's for a script that it cannot read, without a heading.
    Syntax,
    /// pytest's for a test that failed, with its message behind `E`.
    Test,
    /// IPython's, which begins with this name of the exception, and ends with it and its message.
    Named(String),
}

/// A traceback whose exception is still missing.
#[derive(Debug)]
struct OpenTraceback {
    rank: Option<u32>,
    form: Form,
    notice: Option<Notice>,
    place: CodePlace,
    /// The exception's line, if a group may still say more.
    text: Option<String>,
    /// Whether the exceptions in a group have begun.
    in_members: bool,
    /// Whether the line before was one of a test's message.
    in_message: bool,
}

impl Tracebacks {
    /// Takes a line of this rank, with its number.
    pub(super) fn push_line(&mut self, number: usize, rank: Option<u32>, line: &str) {
        let before = self.notices.iter().position(|(of, _)| *of == rank).map(|at| self.notices.swap_remove(at).1);
        self.notices.extend(Notice::parse(line).map(|notice| (rank, notice)));
        let open = self.open.iter().position(|open| open.rank == rank);
        if let Some(at) = open {
            if self.open[at].is_inside(line) {
                return self.open[at].take_inside(line);
            }
            if self.open[at].text.is_some() {
                self.close(at, number);
            } else if self.open[at].form == Form::Test {
                self.open.swap_remove(at);
            }
        }
        // What looks like a script that cannot be read, and has not ended like one, was none.
        self.open.retain(|open| open.rank != rank || open.form != Form::Syntax || open.is_last(line));
        let has_open = self.open.iter().any(|open| open.rank == rank);
        if let Some(form) = Form::parse(line).or_else(|| Form::parse_syntax(line).filter(|_| !has_open)) {
            self.open.retain(|open| open.rank != rank);
            let mut open = OpenTraceback::new(rank, form, before);
            if open.form == Form::Syntax {
                open.take_inside(line);
            }
            self.open.push(open);
        } else if let Some(at) = self.open.iter().position(|open| open.rank == rank)
            && self.open[at].is_last(line)
        {
            self.open[at].text = Some(line.trim().to_owned());
            self.close(at, number);
        }
    }

    /// The output ends before this line.
    pub(super) fn finish(&mut self, number: usize) {
        while let Some(at) = self.open.iter().position(|open| open.text.is_some()) {
            self.close(at, number);
        }
    }

    fn close(&mut self, at: usize, number: usize) {
        let OpenTraceback { rank, notice, place, text, .. } = self.open.swap_remove(at);
        let thread = match notice {
            Some(Notice::Ignored) => return,
            Some(Notice::Thread(name)) => Some(name),
            None => None,
        };
        let text = shortened(&text.unwrap_or_default());
        self.done.push((number, Exception { text, place: place.text(), rank, thread }));
    }
}

impl OpenTraceback {
    fn new(rank: Option<u32>, form: Form, notice: Option<Notice>) -> Self {
        Self { rank, form, notice, place: CodePlace::default(), text: None, in_members: false, in_message: false }
    }

    /// Whether a line can only be a part of this.
    fn is_inside(&self, line: &str) -> bool {
        match self.form {
            Form::Plain | Form::Syntax => line.starts_with([' ', '\t']),
            Form::Group => line.trim_start().starts_with(['|', '+']) && line.starts_with(' '),
            Form::Boxed => line.starts_with(['│', '╰', '|', '+']),
            Form::Test => !line.starts_with(['=', '-']) && Form::parse(line).is_none(),
            Form::Named(_) => !self.is_last(line) && Form::parse(line).is_none(),
        }
    }

    fn take_inside(&mut self, line: &str) {
        let frame = match self.form {
            Form::Plain | Form::Syntax => Frame::parse(line),
            Form::Group => return self.take_from_group(line),
            Form::Boxed => Frame::parse_boxed(line),
            Form::Test => return self.take_from_test(line),
            Form::Named(_) => Frame::parse_named(line),
        };
        frame.into_iter().for_each(|frame| self.place.push_inner(frame));
    }

    /// A line of a group: of its own traceback, or of an exception in it, of which the first one's text is added.
    fn take_from_group(&mut self, line: &str) {
        self.in_members |= line.trim_start().starts_with('+');
        let text = line.trim_start().trim_start_matches('|');
        let text = text.strip_prefix(' ').unwrap_or(text);
        match (Frame::parse(text), &self.text) {
            (Some(frame), None) => self.place.push_inner(frame),
            _ if text.starts_with([' ', '+']) || text.trim().is_empty() || text.contains(HEADER) => (),
            (_, None) => self.text = Some(text.trim().to_owned()),
            (_, Some(of_group)) if self.in_members && !of_group.contains(", the first: ") => {
                self.text = Some(format!("{of_group}, the first: {}", text.trim()));
            }
            _ => (),
        }
    }

    /// A line of a test that failed: of its code, of its message, of which the first one counts, or a place. An exception
    /// that follows from another one comes later.
    fn take_from_test(&mut self, line: &str) {
        let message = line.strip_prefix("E   ").map(str::trim).filter(|message| !message.is_empty());
        if let (Some(message), false) = (message, self.in_message) {
            self.text = Some(message.to_owned());
        }
        self.in_message = message.is_some();
        Frame::parse_tested(line).into_iter().for_each(|frame| self.place.push_inner(frame));
    }

    /// Whether this line, which is not inside, is that of the exception.
    fn is_last(&self, line: &str) -> bool {
        match &self.form {
            Form::Named(name) => {
                line.strip_prefix(name.as_str()).is_some_and(|rest| matches!(rest.chars().next(), None | Some(':')))
            }
            Form::Syntax => SYNTAX_ERRORS.iter().any(|name| line.starts_with(name)),
            Form::Test => false,
            _ => !line.trim().is_empty(),
        }
    }
}

impl Form {
    /// The form of the traceback that begins in this line, perhaps after a progress bar or a prompt.
    fn parse(line: &str) -> Option<Self> {
        if line.starts_with("___") && line.ends_with("___") && is_spaced(line.trim_matches('_')) {
            return Some(Self::Test);
        }
        let (before, after) = line.split_once(HEADER)?;
        match (before.trim_end(), after.trim_end()) {
            (before, ":") if before.ends_with("+ Exception Group") => Some(Self::Group),
            (_, ":") => Some(Self::Plain),
            (before, after) if before.ends_with(['─', '-']) && after.ends_with(['╮', '+']) => Some(Self::Boxed),
            (name, "") if !name.is_empty() && !name.contains(char::is_whitespace) => Some(Self::Named(name.to_owned())),
            _ => None,
        }
    }
}

/// Whether a text has a space on either side, as a test's name has in the heading of its failure.
fn is_spaced(text: &str) -> bool {
    text.len() > 2 && text.starts_with(' ') && text.ends_with(' ')
}

/// Exceptions by which Python refuses a script.
const SYNTAX_ERRORS: [&str; 3] = ["SyntaxError: ", "IndentationError: ", "TabError: "];

impl Form {
    /// The form of what begins with a frame of no function.
    fn parse_syntax(line: &str) -> Option<Self> {
        let (_, number) = line.strip_prefix("  File \"")?.split_once("\", line ")?;
        number.bytes().all(|byte| byte.is_ascii_digit()).then_some(Self::Syntax)
    }
}

impl Notice {
    fn parse(line: &str) -> Option<Self> {
        if line.starts_with("Exception ignored in") {
            return Some(Self::Ignored);
        }
        let (_, name) = line.split_once("Exception in thread ")?;
        Some(Self::Thread(name.trim_end().trim_end_matches(':').to_owned()))
    }
}

/// A message that becomes part of a paragraph.
fn shortened(text: &str) -> String {
    const MOST: usize = 200;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exceptions(text: &str) -> Vec<Exception> {
        let mut read = Tracebacks::default();
        text.lines().enumerate().for_each(|(at, line)| read.push_line(at, None, line));
        read.finish(text.lines().count());
        read.done.into_iter().map(|(_, exception)| exception).collect()
    }

    #[track_caller]
    fn check(text: &str, exception: &str, place: &str) {
        let found = exceptions(text);
        let found: Vec<_> = found.iter().map(|found| (found.text.as_str(), found.place.as_deref())).collect();
        assert_eq!(found, [(exception, Some(place))], "{text}");
    }

    const PLAIN: &str = "Traceback (most recent call last):\n  File \"/w/data.py\", line 81, in collate\n    x = table[word]\n        ~~~~~^^^^^^\nKeyError: 'x'\n";

    #[test]
    fn traceback_after_progress_bar_or_prompt_is_found() {
        for before in ["", "epoch 3:  45%|####5     | 45/100 [00:03<00:04]", "(Pdb) ", ">>> "] {
            check(&format!("{before}{PLAIN}"), "KeyError: 'x'", "collate, data.py:81");
        }
    }

    #[test]
    fn script_that_python_cannot_read_is_an_exception() {
        for error in ["SyntaxError: invalid syntax", "IndentationError: unexpected indent", "TabError: inconsistent"] {
            check(&format!("  File \"/w/train.py\", line 2\n    x = = 1\n        ^\n{error}\n"), error, "train.py:2");
        }
        assert_eq!(exceptions("  File \"/w/train.py\", line 2\nand on\nSyntaxError: no"), []);
        assert_eq!(exceptions(&PLAIN.replace(", in collate", "")).len(), 1, "a part of a traceback");
    }

    #[test]
    fn group_has_its_first_exception() {
        let group = "  + Exception Group Traceback (most recent call last):
  |   File \"/w/train.py\", line 9, in main
  |     raise ExceptionGroup('two', [KeyError('x'), OSError(3)])
  | ExceptionGroup: two (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File \"/w/data.py\", line 81, in collate
    | KeyError: 'x'
    +---------------- 2 ----------------
    | OSError: 3
    +------------------------------------
";
        check(group, "ExceptionGroup: two (2 sub-exceptions), the first: KeyError: 'x'", "main, train.py:9");
        let both = exceptions(&format!("{group}{PLAIN}"));
        assert_eq!(both.iter().map(|found| found.text.len()).collect::<Vec<_>>(), [64, 13]);
    }

    #[test]
    fn box_of_rich_is_read() {
        let boxed = "\u{256d}\u{2500}\u{2500} Traceback (most recent call last) \u{2500}\u{2500}\u{256e}
\u{2502} /w/train.py:9 in main                    \u{2502}
\u{2502} \u{2771}  9 \u{2502}   collate(batch)                  \u{2502}
\u{2502} /w/data.py:81 in collate                 \u{2502}
\u{2570}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{256f}
KeyError: 'x'
";
        check(boxed, "KeyError: 'x'", "collate, data.py:81");
        let ascii = "+------- Traceback (most recent call last) -------+\n| /w/data.py:81 in collate |\n+---------+\nKeyError: 'x'\n";
        check(ascii, "KeyError: 'x'", "collate, data.py:81");
    }

    #[test]
    fn traceback_of_ipython_is_read() {
        let text = "---------------------------------------------------------------------------
KeyError                                  Traceback (most recent call last)
File /w/train.py:9
      7 for batch in loader:
----> 9     collate(batch)

File /w/data.py:81, in collate(batch)
---> 81     return table[word]

KeyError: 'x'
";
        check(text, "KeyError: 'x'", "collate, data.py:81");
    }

    #[test]
    fn failure_of_a_test_is_read() {
        let long = "=== FAILURES ===
_________________ test_training __________________

    def test_training():
>       helper(1)

test_train.py:7:
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _

    def helper(x):
>       raise ValueError(\"no\\nlabels\")
E       ValueError: no
E       labels

test_train.py:3: ValueError
";
        let end = "=== short test summary info ===\nFAILED test_train.py::test_training - ValueError: no\n1 failed in 3.36s\n";
        check(&format!("{long}{end}"), "ValueError: no", "test_train.py:3");
        check(&format!("{long}--- Captured stdout call ---\nE   is\n{end}"), "ValueError: no", "test_train.py:3");
        let short = "_____ test_training _____\ntest_train.py:7: in test_training\n    helper(1)\ntest_train.py:3: in helper\n    assert x == 2\nE   assert 1 == 2\n";
        check(&format!("{short}{end}"), "assert 1 == 2", "helper, test_train.py:3");
        let chained = "_____ test_a _____\nE   KeyError: 1\n\na.py:1: KeyError\n\nDuring handling\nE   ValueError: 2\n\na.py:9: ValueError\n";
        check(&format!("{chained}{short}{end}")[..chained.len()], "ValueError: 2", "a.py:9");
        assert_eq!(exceptions(&format!("{long}{short}{end}")).len(), 2);
        assert_eq!(exceptions(&format!("_____ results _____\nepoch 1\n=====\n{PLAIN}")).len(), 1);
        assert_eq!(exceptions(&format!("_____ results _____\nepoch 1\n{PLAIN}")).len(), 1);
    }

    #[test]
    fn thread_is_named_and_ignored_exceptions_are_left_out() {
        let thread = exceptions(&format!("Exception in thread Thread-1 (load):\n{PLAIN}"));
        assert_eq!(thread[0].thread.as_deref(), Some("Thread-1 (load)"));
        let text = format!("{PLAIN}Exception ignored in: <function A.__del__ at 0x1>\n{PLAIN}");
        assert_eq!(exceptions(&text).len(), 1, "what is ignored ends nothing");
    }

    #[test]
    fn interleaved_tracebacks_of_two_ranks_are_separated() {
        let mut read = Tracebacks::default();
        let lines = [
            (1, "Traceback (most recent call last):"),
            (0, "Traceback (most recent call last):"),
            (1, "  File \"/a/train.py\", line 9, in <module>"),
            (0, "  File \"/a/train.py\", line 12, in main"),
            (1, "    step()"),
            (1, "  File \"/a/data.py\", line 81, in collate"),
            (1, "ValueError: 3"),
            (0, "KeyError: 'x'"),
        ];
        lines.iter().enumerate().for_each(|(at, (rank, line))| read.push_line(at, Some(*rank), line));
        let said: Vec<_> = read.done.iter().map(|(_, e)| (e.rank, e.text.as_str(), e.place.as_deref())).collect();
        let expected = [
            (Some(1), "ValueError: 3", Some("collate, data.py:81")),
            (Some(0), "KeyError: 'x'", Some("main, train.py:12")),
        ];
        assert_eq!(said, expected);
    }
}
