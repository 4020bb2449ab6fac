"""Age, mood and pose from one trunk; gradients of two micro-batches are added up."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(149)
torch.set_num_threads(1)


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1, groups=4), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(3), nn.Flatten(),
        )
        self.heads = nn.ModuleDict({"age": nn.Linear(288, 1), "mood": nn.Linear(288, 7), "pose": nn.Linear(288, 3)})
        self.weights = nn.Parameter(torch.zeros(3))

    def forward(self, x):
        h = self.trunk(x)
        return {name: head(h) for name, head in self.heads.items()}


n = 20 * 2 * 70
data = TensorDataset(torch.randn(n, 1, 40, 40), torch.rand(n, 1), torch.randint(0, 7, (n,)), torch.randn(n, 3))
model = MultiTask()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
for epoch in range(11):
    for i, (x, age, mood, pose) in enumerate(DataLoader(data, 20, shuffle=True)):
        out = model(x)
        losses = torch.stack([(out["age"] - age).abs().mean(), nn.functional.cross_entropy(out["mood"], mood), (out["pose"] - pose).square().mean()])
        loss = (torch.exp(-model.weights) * losses + model.weights).sum() / 2
        loss.backward()
        if i % 2:
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, [round(v, 3) for v in losses.tolist()], flush=True)
