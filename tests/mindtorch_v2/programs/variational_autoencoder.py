"""The VAE of the examples: reparameterisation, summed BCE and KL."""

import torch
from torch import nn, optim
from torch.nn import functional as F

torch.manual_seed(1)


class VAE(nn.Module):
    def __init__(self):
        super(VAE, self).__init__()
        self.fc1 = nn.Linear(36, 20)
        self.fc21 = nn.Linear(20, 3)
        self.fc22 = nn.Linear(20, 3)
        self.fc3 = nn.Linear(3, 20)
        self.fc4 = nn.Linear(20, 36)

    def encode(self, x):
        h = F.relu(self.fc1(x))
        return self.fc21(h), self.fc22(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 36))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


def loss_function(r, x, mu, logvar):
    BCE = F.binary_cross_entropy(r, x.view(-1, 36), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


model = VAE()
optimizer = optim.Adam(model.parameters(), lr=1e-2)
data = torch.bernoulli(torch.rand(32, 1, 6, 6))
for epoch in range(5):
    model.train()
    optimizer.zero_grad()
    r, mu, lv = model(data)
    loss = loss_function(r, data, mu, lv)
    loss.backward()
    optimizer.step()
    print("====> Epoch: {} Average loss: {:.4f}".format(epoch, loss.item() / len(data)))
with torch.no_grad():
    s = model.decode(torch.randn(4, 3)).view(4, 1, 6, 6)
    print(s.mean(), s[0, 0, :2])
    print(s.round().int()[1])
