//! Which names are shown: all, or those with a given part.

use super::{App, Question};

impl App {
    /// The part that names must have to be shown; empty where all are.
    pub fn filter(&self) -> &str {
        match &self.prompt {
            // While it is being typed it holds already.
            Some(prompt) if prompt.question == Question::Filter => &prompt.text,
            _ => &self.filter,
        }
    }

    /// Whether something with this name is shown.
    pub fn passes(&self, name: &str) -> bool {
        let filter = self.filter();
        filter.is_empty() || name.to_lowercase().contains(&filter.to_lowercase())
    }
}
