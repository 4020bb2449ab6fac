//! What a training loop can do, as hooks report it.

/// One kind of work of a training loop; the numbers are those of `gnntop.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Work {
    /// The loop asks for a batch.
    Fetch = 0,
    /// A loader draws a neighbourhood.
    Sample = 1,
    /// A loader collects the features of what was drawn.
    Gather = 2,
    /// A batch is moved to a device.
    Transfer = 3,
    /// A root module is called.
    Forward = 4,
    /// A root module in training mode is called without gradients.
    ForwardWithoutGradients = 5,
    /// A root module is called without gradients, and not to train.
    Evaluation = 6,
    /// Gradients of the parameters are computed.
    Backward = 7,
    /// Gradients are computed that are no micro-batch's, as for a penalty.
    Gradients = 8,
    /// An optimizer steps.
    Optimizer = 9,
    /// An optimizer steps by a closure: forward and backward are inside.
    Closure = 10,
    /// Gradients are set to zero, which frees memory: also the optimizer's phase.
    ZeroGrad = 11,
    /// Gradients are unscaled: part of the optimizer's phase, even outside its step.
    Unscale = 12,
    /// Gradients are clipped: as above.
    Clip = 13,
    /// The program itself communicates with other ranks.
    Collective = 14,
    /// A checkpoint is written.
    Checkpoint = 15,
    /// Code is compiled.
    Compile = 16,
    /// An environment steps or is reset.
    Environment = 17,
    /// A module that nothing trains, such as a teacher or an encoder, is called: forward, unless it is part of the loss.
    Frozen = 18,
}

impl Work {
    pub(super) const ALL: [Self; 19] = [
        Self::Fetch,
        Self::Sample,
        Self::Gather,
        Self::Transfer,
        Self::Forward,
        Self::ForwardWithoutGradients,
        Self::Evaluation,
        Self::Backward,
        Self::Gradients,
        Self::Optimizer,
        Self::Closure,
        Self::ZeroGrad,
        Self::Unscale,
        Self::Clip,
        Self::Collective,
        Self::Checkpoint,
        Self::Compile,
        Self::Environment,
        Self::Frozen,
    ];

    /// The work with this number.
    pub(crate) fn from_number(number: i32) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }
}
