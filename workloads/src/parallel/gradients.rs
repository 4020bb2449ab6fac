//! Gradients summed over ranks: many small tensors as a few large buckets.

use candle_core::backprop::GradStore;
use candle_core::{CpuStorage, DType, Device, InplaceOp1, Layout, Tensor, bail};
use gnntop_probe::{Name, Reported, phase, span};

use super::{Collective, OnDevice, SyncError};
use gnntop_nn::kernels::host_slice;
use gnntop_nn::models::Parameter;

/// Until the slowest rank arrives.
static WAIT: Name = Name::reported(Reported::Wait);
/// Moving and adding up.
static REDUCE: Name = Name::reported(Reported::Reduce);

/// Values of a bucket, 4 MiB: large enough that a call's own cost does not count, small enough to stay in a cache.
const BUCKET: usize = 1 << 20;

/// Makes the gradients of all ranks their mean.
#[derive(Debug)]
pub struct GradientSync {
    parameters: Vec<Parameter>,
    /// Kept between steps: fresh memory is slow.
    bucket: Vec<f32>,
}

impl GradientSync {
    /// For a model of these parameters, the same on every rank.
    #[must_use]
    pub fn new(parameters: Vec<Parameter>) -> Self {
        let count: usize = parameters.iter().map(|parameter| parameter.var.elem_count()).sum();
        Self { parameters, bucket: Vec::with_capacity(count.min(BUCKET)) }
    }

    /// Gives every rank the parameters of rank 0.
    ///
    /// # Errors
    /// A rank is gone, or has other parameters.
    pub fn share_parameters(&self, ranks: &dyn Collective) -> Result<(), SyncError> {
        for parameter in &self.parameters {
            if let Some(devices) = ranks.on_device() {
                devices.broadcast(0, parameter.var.as_tensor())?;
                continue;
            }
            let mut values = parameter.var.flatten_all()?.to_device(&Device::Cpu)?.to_vec1::<f32>()?;
            ranks.broadcast(0, &mut values)?;
            let shared = Tensor::from_vec(values, parameter.var.shape(), parameter.var.device())?;
            parameter.var.set(&shared)?;
        }
        Ok(())
    }

    /// Replaces every gradient by its mean over the ranks, as the phase `all-reduce`, which is split into `wait` and
    /// `reduce`. If the engine joins devices, `wait` lasts until the slowest rank's host arrives, and `reduce` is the
    /// submission: the device waits and moves later, within its own time of the phase. A parameter without a gradient
    /// counts as one of zeros, on all ranks or none.
    ///
    /// # Errors
    /// A rank is gone or has other parameters, or a gradient is not f32.
    pub fn all_reduce(&mut self, gradients: &mut GradStore, ranks: &dyn Collective) -> Result<(), SyncError> {
        let _phase = span(&phase::ALL_REDUCE);
        {
            let _wait = span(&WAIT);
            ranks.barrier()?;
        }
        let _reduce = span(&REDUCE);
        let mut first = 0;
        while first < self.parameters.len() {
            let end = self.bucket_end(first);
            match ranks.on_device() {
                Some(devices) => mean_of_bucket(&self.parameters[first..end], gradients, devices)?,
                None => self.reduce_bucket(first..end, gradients, ranks)?,
            }
            first = end;
        }
        Ok(())
    }

    /// One after the last parameter of the bucket that begins with `first`.
    fn bucket_end(&self, first: usize) -> usize {
        let mut values = 0;
        let fits = |parameter: &&Parameter| {
            values += parameter.var.elem_count();
            values <= BUCKET
        };
        first + self.parameters[first..].iter().take_while(fits).count().max(1)
    }

    fn reduce_bucket(
        &mut self,
        members: std::ops::Range<usize>,
        gradients: &mut GradStore,
        ranks: &dyn Collective,
    ) -> Result<(), SyncError> {
        let members = &self.parameters[members];
        self.bucket.clear();
        for parameter in members {
            append(&mut self.bucket, parameter, gradients)?;
        }
        ranks.all_reduce(&mut self.bucket)?;
        let share = 1.0 / ranks.ranks() as f32;
        let mut rest = &self.bucket[..];
        for parameter in members {
            let (sums, after) = rest.split_at(parameter.var.elem_count());
            rest = after;
            if let Some(gradient) = gradients.remove(&parameter.var) {
                let gradient = write(gradient, sums, share)?;
                gradients.insert(&parameter.var, gradient);
            }
        }
        Ok(())
    }
}

/// The means of a bucket's gradients, in device memory that they are copied into once and then stay in.
fn mean_of_bucket(members: &[Parameter], gradients: &mut GradStore, devices: &dyn OnDevice) -> Result<(), SyncError> {
    let bucket = joined(members, gradients)?;
    devices.mean(&bucket)?;
    let mut first = 0;
    for Parameter { var, .. } in members {
        if gradients.remove(var).is_some() {
            gradients.insert(var, bucket.narrow(0, first, var.elem_count())?.reshape(var.shape())?);
        }
        first += var.elem_count();
    }
    Ok(())
}

/// The gradients one after the other, in memory that nothing else uses.
fn joined(members: &[Parameter], gradients: &GradStore) -> candle_core::Result<Tensor> {
    let flat = |Parameter { var, .. }: &Parameter| match gradients.get(var) {
        Some(gradient) => gradient.detach().flatten_all(),
        None => Tensor::zeros(var.elem_count(), DType::F32, var.device()),
    };
    let all = members.iter().map(flat).collect::<candle_core::Result<Vec<_>>>()?;
    match &all[..] {
        // Joining one would give it back.
        [only] => only.force_contiguous(),
        all => Tensor::cat(all, 0),
    }
}

fn append(bucket: &mut Vec<f32>, parameter: &Parameter, gradients: &GradStore) -> candle_core::Result<()> {
    let Some(gradient) = gradients.get(&parameter.var) else {
        bucket.resize(bucket.len() + parameter.var.elem_count(), 0.0);
        return Ok(());
    };
    let gradient = gradient.to_device(&Device::Cpu)?.contiguous()?;
    let (storage, layout) = gradient.storage_and_layout();
    bucket.extend_from_slice(host_slice::<f32>(&storage, layout)?);
    Ok(())
}

/// `sums * share` in place of a gradient, in its own memory where it is on the host.
fn write(gradient: Tensor, sums: &[f32], share: f32) -> candle_core::Result<Tensor> {
    if gradient.device().is_cpu() && gradient.is_contiguous() {
        gradient.inplace_op1(&Overwrite { sums, share })?;
        return Ok(gradient);
    }
    let means: Vec<f32> = sums.iter().map(|sum| sum * share).collect();
    Tensor::from_vec(means, gradient.shape(), gradient.device())
}

struct Overwrite<'a> {
    sums: &'a [f32],
    share: f32,
}

impl InplaceOp1 for Overwrite<'_> {
    fn name(&self) -> &'static str {
        "overwrite"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> candle_core::Result<()> {
        let CpuStorage::F32(values) = storage else { bail!("overwrite: gradients are f32") };
        let Some((start, end)) = layout.contiguous_offsets() else { bail!("overwrite: the gradient has gaps") };
        values[start..end].iter_mut().zip(self.sums).for_each(|(value, sum)| *value = sum * self.share);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Var;

    use super::super::thread_ranks;
    use super::*;

    fn parameter(name: &str, values: &[f32]) -> Parameter {
        Parameter { name: name.to_owned(), var: Var::new(values, &Device::Cpu).unwrap() }
    }

    /// Gradients of `sum(a * scale) + sum(b * b)`; `c` has none.
    fn gradients(parameters: &[Parameter], scale: f64) -> GradStore {
        let [a, b] = [0, 1].map(|at| parameters[at].var.as_tensor());
        let loss = (a * scale).unwrap().sum_all().unwrap() + b.sqr().unwrap().sum_all().unwrap();
        loss.unwrap().backward().unwrap()
    }

    #[test]
    fn every_rank_gets_the_mean_of_the_gradients() {
        let seen: Vec<_> = std::thread::scope(|scope| {
            let on_rank = |rank: super::super::ThreadRank| {
                let number = rank.rank() as f32;
                let parameters =
                    vec![parameter("a", &[1.0; 5]), parameter("b", &[number, 1.0, 2.0]), parameter("c", &[1.0])];
                let mut gradients = gradients(&parameters, f64::from(number) + 1.0);
                let mut sync = GradientSync::new(parameters.clone());
                sync.all_reduce(&mut gradients, &rank).unwrap();
                let of = |at: usize| gradients.get(&parameters[at].var).map(|t| t.to_vec1::<f32>().unwrap());
                (of(0), of(1), of(2))
            };
            let threads: Vec<_> =
                thread_ranks(3, false).into_iter().map(|rank| scope.spawn(move || on_rank(rank))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for (a, b, c) in seen {
            assert_eq!(a, Some(vec![2.0; 5]));
            assert_eq!(b, Some(vec![2.0, 2.0, 4.0]));
            assert_eq!(c, None);
        }
    }

    #[test]
    fn parameters_of_all_ranks_become_those_of_the_first() {
        std::thread::scope(|scope| {
            for rank in thread_ranks(2, false) {
                scope.spawn(move || {
                    let parameters = vec![parameter("a", &[rank.rank() as f32, 5.0])];
                    GradientSync::new(parameters.clone()).share_parameters(&rank).unwrap();
                    assert_eq!(parameters[0].var.to_vec1::<f32>().unwrap(), [0.0, 5.0]);
                });
            }
        });
    }

    #[test]
    fn buckets_are_filled_but_never_split_a_parameter() {
        let big = vec![0.0; BUCKET / 2 + 1];
        let sync = GradientSync::new(vec![
            parameter("a", &big),
            parameter("b", &big),
            parameter("c", &[0.0; 4]),
            parameter("d", &vec![0.0; BUCKET + 7]),
        ]);
        assert_eq!([0, 1, 3].map(|first| sync.bucket_end(first)), [1, 3, 4]);
    }
}
