"""Ordinary trainings by libraries and over ranks, with no mistake in them; the argument says which one to run."""

import sys
import tempfile

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

QUIET = dict(enable_progress_bar=False, enable_model_summary=False, accelerator="cpu")


def net(width=64, hidden=900):
    return nn.Sequential(
        nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 5)
    )


def rows(count, width=64):
    return TensorDataset(torch.randn(count, width), torch.randint(5, (count,)))


def lightning_module():
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = net()

        def training_step(self, batch, index):
            return functional.cross_entropy(self.net(batch[0]), batch[1])

        def validation_step(self, batch, index):
            self.log("loss", functional.cross_entropy(self.net(batch[0]), batch[1]))

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-4)

    return Module()


def lightning_fit():
    import lightning

    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(max_epochs=3, default_root_dir=folder, logger=False, **QUIET)
        trainer.fit(lightning_module(), DataLoader(rows(512 * 30), 512), DataLoader(rows(512 * 2), 512))


def lightning_accumulates():
    import lightning

    kept = dict(logger=False, enable_checkpointing=False, accumulate_grad_batches=3, gradient_clip_val=1.0)
    lightning.Trainer(max_epochs=1, **kept, **QUIET).fit(lightning_module(), DataLoader(rows(384 * 120), 384))


def trainer():
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    model = GPT2LMHeadModel(GPT2Config(vocab_size=300, n_positions=48, n_embd=192, n_layer=3, n_head=4))
    texts = [{"input_ids": it, "labels": it} for it in torch.randint(300, (8 * 130, 40))]
    with tempfile.TemporaryDirectory() as folder:
        how = dict(per_device_train_batch_size=8, num_train_epochs=1, save_strategy="no", report_to=[])
        Trainer(model, TrainingArguments(folder, use_cpu=True, disable_tqdm=True, **how), train_dataset=texts).train()


def accelerated():
    from accelerate import Accelerator
    from transformers import DistilBertConfig, DistilBertForSequenceClassification

    config = DistilBertConfig(
        vocab_size=200, dim=192, n_layers=3, n_heads=4, hidden_dim=384, max_position_embeddings=40
    )
    model = DistilBertForSequenceClassification(config)
    accelerator = Accelerator(cpu=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    data = TensorDataset(torch.randint(200, (16 * 120, 32)), torch.randint(2, (16 * 120,)))
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(data, 16))
    for x, y in loader:
        optimizer.zero_grad()
        accelerator.backward(model(input_ids=x, labels=y).loss)
        optimizer.step()


def speaks():
    """Text generation: a step is a token."""
    from transformers import LlamaConfig, LlamaForCausalLM

    size = dict(hidden_size=384, intermediate_size=1024, num_hidden_layers=6, num_attention_heads=6)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=500, max_position_embeddings=400, **size)).eval()
    with torch.inference_mode():
        model.generate(torch.randint(500, (8, 24)), max_new_tokens=220, min_new_tokens=220, do_sample=False)


def sees():
    from transformers import ViTConfig, ViTForImageClassification

    size = dict(hidden_size=144, num_hidden_layers=4, num_attention_heads=4, intermediate_size=288)
    model = ViTForImageClassification(ViTConfig(image_size=48, patch_size=8, **size))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(130):
        optimizer.zero_grad()
        model(pixel_values=torch.rand(12, 3, 48, 48), labels=torch.randint(2, (12,))).loss.backward()
        optimizer.step()


def ranks(model, data, micro_batches=1):
    import torch.distributed as dist

    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(3):
        sampler = DistributedSampler(data)
        sampler.set_epoch(epoch)
        for place, (x, y) in enumerate(DataLoader(data, 512, sampler=sampler), 1):
            is_last = place % micro_batches == 0
            model.require_backward_grad_sync = is_last
            functional.cross_entropy(model(x), y).backward()
            if is_last:
                optimizer.step()
                optimizer.zero_grad()
    dist.destroy_process_group()


def parallel():
    import torch.distributed as dist

    dist.init_process_group("gloo")
    ranks(nn.parallel.DistributedDataParallel(net()), rows(512 * 2 * 24))


def parallel_accumulates():
    import torch.distributed as dist

    dist.init_process_group("gloo")
    ranks(nn.parallel.DistributedDataParallel(net()), rows(512 * 2 * 36), 4)


def sharded():
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard

    dist.init_process_group("gloo")
    model = net()
    fully_shard(model, mesh=dist.device_mesh.init_device_mesh("cpu", (2,)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(80):
        optimizer.zero_grad()
        model(torch.randn(512, 64)).square().mean().backward()
        optimizer.step()
    dist.destroy_process_group()


def plays():
    """A little of an environment, and much learning."""
    import gymnasium

    env = gymnasium.make("CartPole-v1")
    actor, critic = net(4)[:-1].append(nn.Linear(900, 2)), net(4)[:-1].append(nn.Linear(900, 1))
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=3e-4)
    state, _ = env.reset(seed=0)
    for _ in range(100):
        states, actions, rewards = [], [], []
        for _ in range(16):
            states.append(torch.as_tensor(state))
            with torch.no_grad():
                actions.append(torch.distributions.Categorical(logits=actor(states[-1])).sample())
            state, reward, ended, _, _ = env.step(int(actions[-1]))
            rewards.append(reward)
            state = env.reset()[0] if ended else state
        seen, done = torch.stack(states).repeat(12, 1), torch.stack(actions).repeat(12)
        gain = torch.tensor(rewards).flip(0).cumsum(0).flip(0).repeat(12) - critic(seen)[:, 0]
        chance = torch.distributions.Categorical(logits=actor(seen)).log_prob(done)
        optimizer.zero_grad()
        (gain.square().mean() - (chance * gain.detach()).mean()).backward()
        optimizer.step()


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    globals()[sys.argv[1]]()
