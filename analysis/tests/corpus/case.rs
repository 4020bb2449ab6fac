//! A run of the corpus with what is to be found in it.

use gnntop_analysis::findings::Kind;

/// How strong the cause is, beside what a person would want to know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// There is none: nothing may be found.
    Clean,
    /// A little less: it may be found or not.
    Below,
    /// It must be found.
    At,
    /// More than that: it must be found.
    Above,
}

impl Strength {
    pub const GROWING: [Self; 3] = [Self::Below, Self::At, Self::Above];
}

/// A run and what is to be found in it.
#[derive(Debug)]
pub struct Case {
    /// Runs with the same cause in different strengths are a class.
    pub class: &'static str,
    pub strength: Strength,
    /// The strength in numbers, for the table.
    pub amount: String,
    pub stream: Vec<u8>,
    /// What must be found; of a strength below, what may be.
    pub expect: Vec<Kind>,
    /// What is true as well, and counts neither way.
    pub also: Vec<Kind>,
    /// What the findings, or the verdict, must say.
    pub says: Vec<String>,
    /// What neither may say.
    pub never_says: Vec<&'static str>,
    /// The steps at which spikes must be found, and no others.
    pub spikes: Option<Vec<u64>>,
}

impl Case {
    pub fn of(class: &'static str, stream: Vec<u8>) -> Self {
        Self {
            class,
            strength: Strength::Clean,
            amount: String::new(),
            stream,
            expect: Vec::new(),
            also: Vec::new(),
            says: Vec::new(),
            never_says: Vec::new(),
            spikes: None,
        }
    }

    pub fn expect(mut self, kind: Kind) -> Self {
        self.expect.push(kind);
        self
    }

    pub fn also(mut self, kind: Kind) -> Self {
        self.also.push(kind);
        self
    }

    pub fn says(mut self, text: impl Into<String>) -> Self {
        self.says.push(text.into());
        self
    }

    pub fn never_says(mut self, text: &'static str) -> Self {
        self.never_says.push(text);
        self
    }

    pub fn spikes(mut self, steps: impl IntoIterator<Item = u64>) -> Self {
        self.spikes = Some(steps.into_iter().collect());
        self
    }

    pub fn name(&self) -> String {
        format!("{} {:?} {}", self.class, self.strength, self.amount).trim_end().to_owned()
    }
}

/// The same cause in three strengths, each with what it is in numbers.
pub fn strengths<T: Copy>(amounts: [(T, &str); 3], case: impl Fn(T) -> Case) -> Vec<Case> {
    let with =
        |(strength, (amount, text)): (Strength, (T, &str))| Case { strength, amount: text.to_owned(), ..case(amount) };
    Strength::GROWING.into_iter().zip(amounts).map(with).collect()
}
