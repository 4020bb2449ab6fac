//! The tracebacks in a program's output, in each form that Python and its libraries print, and the lines of the program in them.

use super::exception::Exception;

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
        Self { rank, form, notice, place: CodePlace::default(), text: None, in_members: false }
    }

    /// Whether a line can only be a part of this.
    fn is_inside(&self, line: &str) -> bool {
        match self.form {
            Form::Plain | Form::Syntax => line.starts_with([' ', '\t']),
            Form::Group => line.trim_start().starts_with(['|', '+']) && line.starts_with(' '),
            Form::Boxed => line.starts_with(['│', '╰', '|', '+']),
            Form::Named(_) => !self.is_last(line) && Form::parse(line).is_none(),
        }
    }

    fn take_inside(&mut self, line: &str) {
        let frame = match self.form {
            Form::Plain | Form::Syntax => Frame::parse(line),
            Form::Group => return self.take_from_group(line),
            Form::Boxed => Frame::parse_boxed(line),
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

    /// Whether this line, which is not inside, is that of the exception.
    fn is_last(&self, line: &str) -> bool {
        match &self.form {
            Form::Named(name) => {
                line.strip_prefix(name.as_str()).is_some_and(|rest| matches!(rest.chars().next(), None | Some(':')))
            }
            Form::Syntax => SYNTAX_ERRORS.iter().any(|name| line.starts_with(name)),
            _ => !line.trim().is_empty(),
        }
    }
}

impl Form {
    /// The form of the traceback that begins in this line, perhaps after a progress bar or a prompt.
    fn parse(line: &str) -> Option<Self> {
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

/// Folders that libraries and Python itself are in.
const LIBRARIES: [&str; 3] = ["/site-packages/", "/dist-packages/", "/lib/python3"];

/// What is known of a stack while its frames are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CodePlace {
    /// The innermost frame of the program itself.
    own: Option<String>,
    innermost: Option<String>,
}

impl CodePlace {
    /// Takes the next frame of a traceback, whose innermost frame comes last.
    fn push_inner(&mut self, Frame { text, is_own }: Frame) {
        if is_own {
            self.own = Some(text.clone());
        }
        self.innermost = Some(text);
    }

    /// Takes the next line of a stack whose innermost frame comes first. Returns whether it is a frame.
    pub(super) fn take_outer(&mut self, line: &str) -> bool {
        let Some(Frame { text, is_own }) = Frame::parse(line) else { return false };
        self.innermost.get_or_insert_with(|| text.clone());
        if is_own {
            self.own.get_or_insert(text);
        }
        true
    }

    /// `collate, data.py:81`, or `main, train.py:9 (inside forward, linear.py:134)`; `None` before the first frame.
    pub(super) fn text(&self) -> Option<String> {
        match (&self.own, &self.innermost) {
            (Some(own), Some(innermost)) if own != innermost => Some(format!("{own} (inside {innermost})")),
            (_, innermost) => innermost.clone(),
        }
    }
}

/// A frame of a stack.
struct Frame {
    /// Such as `collate, data.py:81`.
    text: String,
    /// Whether its file is the program's own.
    is_own: bool,
}

impl Frame {
    fn new(file: &str, number: &str, function: Option<&str>) -> Self {
        let is_own = !file.starts_with('<') && !LIBRARIES.iter().any(|folder| file.contains(folder));
        let file = file.rsplit('/').next().unwrap_or(file);
        let text = match function.map(str::trim) {
            Some(function) if function != "<module>" => format!("{function}, {file}:{number}"),
            _ => format!("{file}:{number}"),
        };
        Self { text, is_own }
    }

    /// Of `  File "/home/me/data.py", line 81, in collate`.
    fn parse(line: &str) -> Option<Self> {
        let (file, rest) = line.trim_start().strip_prefix("File \"")?.split_once("\", line ")?;
        let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
        Some(Self::new(file, &number, rest.split_once(" in ").map(|(_, function)| function)))
    }

    /// Of `│ /home/me/data.py:81 in collate      │`.
    fn parse_boxed(line: &str) -> Option<Self> {
        let (place, function) = line.trim_matches(['│', '|', ' ']).rsplit_once(" in ")?;
        let (file, number) = place.rsplit_once(':')?;
        let is_one = !file.is_empty() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_one.then(|| Self::new(file, number, Some(function)))
    }

    /// Of `File /home/me/data.py:81, in collate(batch)`.
    fn parse_named(line: &str) -> Option<Self> {
        let place = line.strip_prefix("File ")?;
        let (place, function) = place.split_once(", in ").map_or((place, None), |(place, of)| (place, Some(of)));
        let (file, number) = place.trim_end().rsplit_once(':')?;
        let function = function.map(|function| function.split('(').next().unwrap_or(function));
        Some(Self::new(file, number, function))
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

    const OWN: &str = "  File \"/w/train.py\", line 9, in main";
    const LIBRARY: &str = "  File \"/env/lib/python3.11/site-packages/torch/nn/linear.py\", line 134, in forward";

    #[test]
    fn own_line_precedes_library_line() {
        let inner = |place: &mut CodePlace, line: &str| {
            Frame::parse(line).into_iter().for_each(|frame| place.push_inner(frame))
        };
        let outer = |place: &mut CodePlace, line: &str| _ = place.take_outer(line);
        let place = |lines: &[&str], take: fn(&mut CodePlace, &str)| {
            let mut place = CodePlace::default();
            lines.iter().for_each(|line| take(&mut place, line));
            place.text()
        };
        let both = Some("main, train.py:9 (inside forward, linear.py:134)".to_owned());
        assert_eq!(place(&[OWN, "    step()", LIBRARY], inner), both);
        assert_eq!(place(&[LIBRARY, OWN, "  File \"/w/a.py\", line 1 in <module>"], outer), both);
        assert_eq!(place(&[OWN], inner).as_deref(), Some("main, train.py:9"));
        assert_eq!(place(&[LIBRARY], outer).as_deref(), Some("forward, linear.py:134"));
        assert_eq!(place(&["no frame"], outer), None);
    }
}
