"""GP regression in float64: Cholesky solves, LBFGS with strong Wolfe, linear algebra errors."""

import torch, math

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)


class GP(torch.nn.Module):
    def __init__(s):
        super().__init__()
        s.ls = torch.nn.Parameter(torch.tensor(0.0))
        s.os = torch.nn.Parameter(torch.tensor(0.0))
        s.ns = torch.nn.Parameter(torch.tensor(-2.0))

    def k(s, a, b):
        return s.os.exp() * torch.exp(-0.5 * torch.cdist(a / s.ls.exp(), b / s.ls.exp()).pow(2))

    def nll(s, X, y):
        K = s.k(X, X) + s.ns.exp() * torch.eye(len(X))
        L = torch.linalg.cholesky(K)
        a = torch.cholesky_solve(y[:, None], L)
        return 0.5 * y @ a.squeeze() + L.diagonal().log().sum() + 0.5 * len(X) * math.log(2 * math.pi)

    @torch.no_grad()
    def predict(s, X, y, Z):
        K = s.k(X, X) + s.ns.exp() * torch.eye(len(X))
        L = torch.linalg.cholesky(K)
        Ks = s.k(X, Z)
        A = torch.linalg.solve_triangular(L, Ks, upper=False)
        return Ks.T @ torch.cholesky_solve(y.unsqueeze(1), L).squeeze(1), s.k(Z, Z).diag() - (A**2).sum(0)


X = torch.linspace(0, 1, 15).unsqueeze(-1) * 6
y = torch.sin(X).squeeze() + 0.1 * torch.randn(15)
gp = GP()
opt = torch.optim.LBFGS(gp.parameters(), lr=0.5, max_iter=10, line_search_fn="strong_wolfe")


def closure():
    opt.zero_grad()
    l = gp.nll(X, y)
    l.backward()
    return l


for i in range(3):
    print(opt.step(closure))
mu, var = gp.predict(X, y, torch.tensor([[0.5], [3.3], [7.0]]))
print(mu, var)
print(dict(gp.named_parameters()))
try:
    torch.linalg.cholesky(torch.tensor([[1.0, 2.0], [2.0, 1.0]]))
except torch.linalg.LinAlgError as e:
    print(type(e).__name__, e)
L, info = torch.linalg.cholesky_ex(torch.tensor([[1.0, 2.0], [2.0, 1.0]]))
print(info)
mvn = torch.distributions.MultivariateNormal(
    torch.zeros(3), covariance_matrix=gp.k(X[:3], X[:3]).detach() + 1e-3 * torch.eye(3)
)
print(mvn.sample((2,)), mvn.log_prob(torch.zeros(3)))
print(
    torch.logdet(torch.eye(3) * 2),
    torch.slogdet(-torch.eye(3)),
    torch.linalg.eigvalsh(torch.tensor([[2.0, 1.0], [1.0, 2.0]])),
)
U, S, Vh = torch.linalg.svd(torch.arange(6.0).reshape(2, 3), full_matrices=False)
print(S, (U @ S.diag() @ Vh))
print(torch.linalg.lstsq(torch.randn(5, 2), torch.randn(5, 1)).solution.shape)
