//! The report of an import: what it used, what it left out, what it guessed, and what it doubts.

/// What an import did with its input, a sentence each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportSummary {
    /// What it used.
    pub used: Vec<String>,
    /// What it left out.
    pub left_out: Vec<String>,
    /// What the input does not say.
    pub guessed: Vec<String>,
    /// Doubtful values of the input, where they are, and what to do.
    pub warnings: Vec<String>,
}

impl ImportSummary {
    /// A line for each kind, and one for each warning.
    pub fn lines(&self) -> Vec<String> {
        let line = |title: &str, what: &[String]| (!what.is_empty()).then(|| format!("{title}: {}", what.join("; ")));
        let kinds = [("used", &self.used), ("left out", &self.left_out), ("guessed", &self.guessed)];
        let kinds = kinds.into_iter().filter_map(|(title, what)| line(title, what));
        kinds.chain(self.warnings.iter().map(|warning| format!("warning: {warning}"))).collect()
    }
}
