//! Weighted choice among the first items of a list, in constant time.

/// Running sums of weights, with a table of where to start looking.
pub(super) struct Cumulative {
    /// Weight of all items before an item, and of all at the end: `[items + 1]`.
    before: Vec<f64>,
    /// For each of as many equal parts of the whole weight as there are items, the item that holds its beginning.
    begin: Vec<u32>,
    /// Parts in a unit of weight.
    parts_per_weight: f64,
}

impl Cumulative {
    /// Of weights above 0.
    pub(super) fn new(weights: impl Iterator<Item = f64>) -> Self {
        let mut before = vec![0.0];
        before.extend(weights.scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        }));
        let items = before.len() - 1;
        let parts_per_weight = if items == 0 { 0.0 } else { items as f64 / before[items] };
        let (mut begin, mut item) = (Vec::with_capacity(items), 0);
        for part in 0..items {
            while item + 1 < items && before[item + 1] * parts_per_weight <= part as f64 {
                item += 1;
            }
            begin.push(item as u32);
        }
        Self { before, begin, parts_per_weight }
    }

    /// Weight of the first `items` items.
    pub(super) fn of_first(&self, items: usize) -> f64 {
        self.before[items]
    }

    /// Weight of all items.
    pub(super) fn total(&self) -> f64 {
        self.before[self.before.len() - 1]
    }

    /// One of the first `items` items, at least 1, in proportion to their weights, for a number in `[0, 1)`.
    pub(super) fn choose(&self, items: usize, number: f64) -> usize {
        let mark = number * self.before[items];
        let part = ((mark * self.parts_per_weight) as usize).min(self.begin.len() - 1);
        let mut item = (self.begin[part] as usize).min(items - 1);
        // Rounding can have begun an item late.
        while item > 0 && self.before[item] > mark {
            item -= 1;
        }
        while item + 1 < items && self.before[item + 1] <= mark {
            item += 1;
        }
        item
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_those_of_a_search_through_all() {
        let weights: Vec<f64> = (0..500).map(|item| 1.0 / (1.0 + f64::from(item * 37 % 500))).collect();
        let cumulative = Cumulative::new(weights.iter().copied());
        for items in [1, 2, 3, 250, 499, 500] {
            for step in 0..1_000 {
                let number = f64::from(step) / 1_000.0;
                let mark = number * cumulative.of_first(items);
                let mut sum = 0.0;
                let expected = weights[..items].iter().position(|weight| {
                    sum += weight;
                    sum > mark
                });
                assert_eq!(Some(cumulative.choose(items, number)), expected, "{number} of {items}");
            }
        }
        assert_eq!(cumulative.total(), cumulative.of_first(500));
        assert_eq!(Cumulative::new(std::iter::empty()).total(), 0.0);
    }
}
