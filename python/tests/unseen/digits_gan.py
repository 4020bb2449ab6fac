"""A small convolutional GAN with two optimizers."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(103)
torch.set_num_threads(1)

G = nn.Sequential(
    nn.Linear(32, 32 * 25), nn.Unflatten(1, (32, 5, 5)), nn.BatchNorm2d(32), nn.ReLU(),
    nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.BatchNorm2d(16), nn.ReLU(), nn.ConvTranspose2d(16, 1, 4, 2, 1), nn.Tanh(),
)
D = nn.Sequential(
    nn.Conv2d(1, 16, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(16, 32, 4, 2, 1), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(32 * 25, 1),
)
g_opt = torch.optim.Adam(G.parameters(), 2e-4, betas=(0.5, 0.999))
d_opt = torch.optim.Adam(D.parameters(), 2e-4, betas=(0.5, 0.999))
bce = nn.functional.binary_cross_entropy_with_logits
real = (torch.rand(112 * 120, 1, 20, 20) > 0.7).float() * 2 - 1
loader = DataLoader(TensorDataset(real), batch_size=112, shuffle=True, drop_last=True)
for epoch in range(7):
    for (x,) in loader:
        fake = G(torch.randn(len(x), 32))
        d_loss = bce(D(x), torch.full((len(x), 1), 0.9)) + bce(D(fake.detach()), torch.zeros(len(x), 1))
        d_opt.zero_grad()
        d_loss.backward()
        d_opt.step()
        g_loss = bce(D(fake), torch.ones(len(x), 1))
        g_opt.zero_grad()
        g_loss.backward()
        g_opt.step()
    print(f"epoch {epoch}: D {d_loss.item():.3f} G {g_loss.item():.3f}", flush=True)
