//! Where in a Python program something happened: the program's own line, and the library's that it was inside of.

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
    /// Takes the next line of a traceback, whose innermost frame comes last. Returns whether it is a frame.
    pub(super) fn take_inner(&mut self, line: &str) -> bool {
        let Some((text, is_own)) = frame(line) else { return false };
        if is_own {
            self.own = Some(text.clone());
        }
        self.innermost = Some(text);
        true
    }

    /// Takes the next line of a stack whose innermost frame comes first. Returns whether it is a frame.
    pub(super) fn take_outer(&mut self, line: &str) -> bool {
        let Some((text, is_own)) = frame(line) else { return false };
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

/// `collate, data.py:81` of `  File "/home/me/data.py", line 81, in collate`, and whether the file is the program's own.
fn frame(line: &str) -> Option<(String, bool)> {
    let (file, rest) = line.trim_start().strip_prefix("File \"")?.split_once("\", line ")?;
    let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let is_own = !file.starts_with('<') && !LIBRARIES.iter().any(|folder| file.contains(folder));
    let file = file.rsplit('/').next().unwrap_or(file);
    let text = match rest.split_once(" in ") {
        Some((_, function)) if function != "<module>" => format!("{}, {file}:{number}", function.trim()),
        _ => format!("{file}:{number}"),
    };
    Some((text, is_own))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "  File \"/w/train.py\", line 9, in main";
    const LIBRARY: &str = "  File \"/env/lib/python3.11/site-packages/torch/nn/linear.py\", line 134, in forward";

    #[test]
    fn own_line_precedes_library_line() {
        let place = |lines: &[&str], take: fn(&mut CodePlace, &str) -> bool| {
            let mut place = CodePlace::default();
            lines.iter().for_each(|line| _ = take(&mut place, line));
            place.text()
        };
        let both = Some("main, train.py:9 (inside forward, linear.py:134)".to_owned());
        assert_eq!(place(&[OWN, "    step()", LIBRARY], CodePlace::take_inner), both);
        assert_eq!(place(&[LIBRARY, OWN, "  File \"/w/a.py\", line 1 in <module>"], CodePlace::take_outer), both);
        assert_eq!(place(&[OWN], CodePlace::take_inner).as_deref(), Some("main, train.py:9"));
        assert_eq!(place(&[LIBRARY], CodePlace::take_outer).as_deref(), Some("forward, linear.py:134"));
        assert_eq!(place(&["no frame"], CodePlace::take_outer), None);
    }
}
