//! Frames of a stack in a program's output, and the program's own line among them.

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
    pub(super) fn push_inner(&mut self, Frame { text, is_own }: Frame) {
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
pub(super) struct Frame {
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
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (file, rest) = line.trim_start().strip_prefix("File \"")?.split_once("\", line ")?;
        let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
        Some(Self::new(file, &number, rest.split_once(" in ").map(|(_, function)| function)))
    }

    /// Of `│ /home/me/data.py:81 in collate      │`.
    pub(super) fn parse_boxed(line: &str) -> Option<Self> {
        let (place, function) = line.trim_matches(['│', '|', ' ']).rsplit_once(" in ")?;
        let (file, number) = place.rsplit_once(':')?;
        let is_one = !file.is_empty() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_one.then(|| Self::new(file, number, Some(function)))
    }

    /// Of `tests/data.py:81: in collate`, `tests/data.py:81: ` or `tests/data.py:81: KeyError`, as pytest has them.
    pub(super) fn parse_tested(line: &str) -> Option<Self> {
        let (place, after) = line.split_once(": ").or_else(|| Some((line.strip_suffix(':')?, "")))?;
        let (file, number) = place.rsplit_once(':')?;
        let is_one = file.ends_with(".py") && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_one.then(|| Self::new(file, number, after.strip_prefix("in ")))
    }

    /// Of `File /home/me/data.py:81, in collate(batch)`.
    pub(super) fn parse_named(line: &str) -> Option<Self> {
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
