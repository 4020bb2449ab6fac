"""A model that is only run, in the way that the first argument names."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

how = sys.argv[1]
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).eval()
loader = DataLoader(TensorDataset(torch.randn(640, 16)), batch_size=32)
if how == "batches":
    with torch.inference_mode():
        for (x,) in loader:
            print(model(x).sum().item().hex())
elif how == "calls":
    token = torch.zeros(1, 16)
    with torch.no_grad():
        for _ in range(30):
            token[0, model(token).argmax()] += 1.0
    print(token.tolist())
elif how == "then trains":
    with torch.no_grad():
        print(sum(model(x).sum().item() for (x,) in DataLoader(loader.dataset, batch_size=256)).hex())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for (x,) in loader:
        optimizer.zero_grad()
        loss = model.train()(x).square().mean()
        loss.backward()
        optimizer.step()
        print(loss.item().hex())
elif how == "generates":
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_layer=1, n_embd=32, n_head=2, vocab_size=100, bos_token_id=0, eos_token_id=None)
    writer = GPT2LMHeadModel(config).eval()
    for prompt in torch.randint(100, (4, 1, 8)):
        print(writer.generate(prompt, max_new_tokens=8, do_sample=False, pad_token_id=0).tolist())
