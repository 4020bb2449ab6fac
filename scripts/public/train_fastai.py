"""fastai: `synth_learner`, which its wheel has for its own tests; its optimizer is not torch's."""

import counting
from fastai.callback.core import Callback
from fastai.callback.progress import ProgressCallback
from fastai.test_utils import synth_learner

counting.start(every_optimizer=False)


class Count(Callback):
    """Counts a step of fastai's optimizer."""

    def after_step(self):
        """Called by the learner after each."""
        counting.count(self.learn.model.parameters())


learner = synth_learner(n_trn=10, n_val=2, cbs=Count())
learner.remove_cb(ProgressCallback)
learner.fit(5)
print(learner.recorder.values)
