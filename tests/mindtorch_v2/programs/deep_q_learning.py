"""DQN with replay memory, namedtuple batches and soft target updates."""

import random, math
from collections import namedtuple, deque
from itertools import count
import torch, torch.nn as nn, torch.optim as optim, torch.nn.functional as F

torch.manual_seed(0)
random.seed(0)


class Env:
    def reset(s):
        s.x = 0.1
        s.v = 0.0
        s.t = 0
        return [s.x, s.v]

    def step(s, a):
        s.v += 0.1 if a else -0.1
        s.x += s.v * 0.3
        s.t += 1
        d = abs(s.x) > 1 or s.t >= 25
        return [s.x, s.v], 1.0 - abs(s.x), d


Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class ReplayMemory(object):
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, n):
        return random.sample(self.memory, n)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, o, a):
        super(DQN, self).__init__()
        self.layer1 = nn.Linear(o, 16)
        self.layer2 = nn.Linear(16, 16)
        self.layer3 = nn.Linear(16, a)

    def forward(self, x):
        return self.layer3(F.relu(self.layer2(F.relu(self.layer1(x)))))


B, GAMMA, TAU = 8, 0.99, 0.05
policy, target = DQN(2, 2), DQN(2, 2)
target.load_state_dict(policy.state_dict())
optimizer = optim.AdamW(policy.parameters(), lr=1e-2, amsgrad=True)
mem = ReplayMemory(200)
env = Env()


def select(state, eps):
    if random.random() > eps:
        with torch.no_grad():
            return policy(state).max(1).indices.view(1, 1)
    return torch.tensor([[random.randint(0, 1)]], dtype=torch.long)


def optimize():
    if len(mem) < B:
        return
    batch = Transition(*zip(*mem.sample(B)))
    mask = torch.tensor(tuple(map(lambda s: s is not None, batch.next_state)), dtype=torch.bool)
    nns = torch.cat([s for s in batch.next_state if s is not None])
    sb, ab, rb = torch.cat(batch.state), torch.cat(batch.action), torch.cat(batch.reward)
    q = policy(sb).gather(1, ab)
    nv = torch.zeros(B)
    with torch.no_grad():
        nv[mask] = target(nns).max(1).values
    loss = nn.SmoothL1Loss()(q, ((nv * GAMMA) + rb).unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy.parameters(), 100)
    optimizer.step()
    return loss


for ep in range(4):
    s = torch.tensor(env.reset(), dtype=torch.float32).unsqueeze(0)
    R = 0
    for t in count():
        a = select(s, 0.9 * math.exp(-ep))
        o, r, done = env.step(a.item())
        R += r
        r = torch.tensor([r])
        ns = None if done else torch.tensor(o, dtype=torch.float32).unsqueeze(0)
        mem.push(s, a, ns, r)
        s = ns
        l = optimize()
        tsd, psd = target.state_dict(), policy.state_dict()
        for k in psd:
            tsd[k] = psd[k] * TAU + tsd[k] * (1 - TAU)
        target.load_state_dict(tsd)
        if done:
            break
    print(ep, t, f"{R:.4f}", l)
