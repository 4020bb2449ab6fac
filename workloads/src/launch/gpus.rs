//! Which GPU belongs to which rank, if each has its own.

use crate::parallel::CollectiveError;

/// The GPUs that a process can see.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    /// The number of the first GPU that ranks take.
    pub(super) first: usize,
    /// How many the driver finds, including those before the first.
    pub(super) count: usize,
    /// Whether ranks are processes: a launcher may show each of them only its own GPU.
    pub(super) to_each_its_own: bool,
}

impl Shown {
    /// The number of the GPU for rank `number` of the `ranks` on this machine.
    ///
    /// # Errors
    /// There are too few GPUs.
    pub(super) fn of_rank(self, number: usize, ranks: usize) -> Result<usize, CollectiveError> {
        let gpus = self.count.saturating_sub(self.first);
        if ranks <= gpus {
            return Ok(self.first + number);
        }
        // As `srun --gpus-per-task=1` does. If it were the same GPU, NCCL would refuse it with its own message.
        if self.to_each_its_own && self.count == 1 && gpus == 1 {
            return Ok(self.first);
        }
        Err(CollectiveError::TooFewGpus { ranks, gpus, first: self.first })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_a_machine_take_one_gpu_after_the_other() {
        let shown = Shown { first: 0, count: 4, to_each_its_own: false };
        assert_eq!([0, 1, 2, 3].map(|number| shown.of_rank(number, 4)), [Ok(0), Ok(1), Ok(2), Ok(3)]);
        let from_the_third = Shown { first: 2, ..shown };
        assert_eq!([0, 1].map(|number| from_the_third.of_rank(number, 2)), [Ok(2), Ok(3)]);
    }

    #[test]
    fn with_too_few_gpus_every_rank_is_told_both_numbers() {
        let shown = Shown { first: 0, count: 2, to_each_its_own: false };
        for number in 0..4 {
            let error = shown.of_rank(number, 4).unwrap_err().to_string();
            assert!(error.starts_with("4 ranks need 4 GPUs, but the driver finds 2 from cuda:0: "), "{error}");
        }
        for (first, count) in [(2, 4), (7, 4), (0, 0)] {
            assert!(Shown { first, count, to_each_its_own: true }.of_rank(0, 3).is_err());
        }
    }

    #[test]
    fn a_process_that_is_shown_one_gpu_takes_that() {
        let shown = Shown { first: 0, count: 1, to_each_its_own: true };
        assert_eq!([0, 7].map(|number| shown.of_rank(number, 8)), [Ok(0), Ok(0)]);
        assert!(Shown { to_each_its_own: false, ..shown }.of_rank(0, 8).is_err());
    }
}
