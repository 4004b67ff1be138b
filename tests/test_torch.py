"""Values and gradients against PyTorch, in float64."""

import numpy as np
import pytest

from course_lib.attention import MultiHeadAttention, attention, causal_keep
from course_lib.functional import cross_entropy, layer_norm
from course_lib.nn import MLP, LayerNorm, Linear
from course_lib.tensor import Tensor

pytestmark = pytest.mark.torch
X = np.random.default_rng(0).normal(size=(2, 3, 4))
OPERATIONS = {
    "exp": lambda x: x.exp(),
    "log": lambda x: (x * x + 1).log(),
    "sqrt": lambda x: (x * x + 1).sqrt(),
    "tanh": lambda x: x.tanh(),
    "relu": lambda x: x.relu(),
    "sum": lambda x: x.sum(1),
    "mean": lambda x: x.mean(-1),
    "var": lambda x: x.var(1),
    "softmax": lambda x: x.softmax(dim=-1),
    "log_softmax": lambda x: x.log_softmax(dim=1),
    "logsumexp": lambda x: x.logsumexp(1),
    "permute": lambda x: x.permute(2, 0, 1),
    "matmul": lambda x: x @ x.mT,
    "broadcast": lambda x: x / (x[:, :1] ** 2 + 1),
    "index": lambda x: x[0, [0, 0, 2]],
}


def compare(torch, ours, theirs, *arrays):
    """Hold values and gradients of two functions of the same arrays against each other."""
    a = [Tensor(x, requires_grad=True) for x in arrays]
    b = [torch.tensor(x, requires_grad=True) for x in arrays]
    out, expected = ours(*a), theirs(*b)
    assert np.allclose(out.data, expected.detach().numpy(), rtol=0, atol=1e-12)
    g = np.random.default_rng(1).normal(size=out.shape)
    out.backward(g)
    expected.backward(torch.tensor(g))
    for x, y in zip(a, b, strict=True):
        assert np.allclose(x.grad, y.grad.numpy(), rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(torch, name):
    compare(torch, OPERATIONS[name], OPERATIONS[name], X)


def test_gelu_layer_norm_and_cross_entropy(torch):
    f = torch.nn.functional
    compare(torch, lambda x: x.gelu(), lambda x: f.gelu(x, approximate="tanh"), X)
    w, b = np.random.default_rng(2).normal(size=(2, 4))
    compare(torch, layer_norm, lambda x, w, b: f.layer_norm(x, (4,), w, b), X, w, b)
    ids = np.array([0, 3, -100])
    theirs = lambda x: f.cross_entropy(x, torch.tensor(ids))  # noqa: E731
    compare(torch, lambda x: cross_entropy(x, ids), theirs, X[0])


def test_attention_with_and_without_a_mask(torch):
    rng = np.random.default_rng(3)
    q, k, v = (rng.normal(size=(2, t, 4)) for t in (3, 5, 5))
    keep = causal_keep(3, 5)
    sdpa = torch.nn.functional.scaled_dot_product_attention
    compare(torch, attention, sdpa, q, k, v)
    masked = lambda q, k, v: sdpa(q, k, v, attn_mask=torch.tensor(keep))  # noqa: E731
    compare(torch, lambda q, k, v: attention(q, k, v, keep), masked, q, k, v)


def test_layers(torch):
    rng = np.random.default_rng(4)
    linear = Linear(4, 5, rng).double()
    twin = torch.nn.Linear(4, 5).double()
    twin.weight.data = torch.tensor(linear.weight.data.T.copy())
    twin.bias.data = torch.tensor(linear.bias.data)
    compare(torch, linear, twin, X)
    compare(torch, LayerNorm(4).double(), torch.nn.LayerNorm(4).double(), X)
    mlp = MLP(4, rng).double()
    layers = [torch.nn.Linear(4, 16), torch.nn.GELU(approximate="tanh"), torch.nn.Linear(16, 4)]
    twin = torch.nn.Sequential(*layers).double()
    for ours, theirs in ((mlp.c_fc, twin[0]), (mlp.c_proj, twin[2])):
        theirs.weight.data = torch.tensor(ours.weight.data.T.copy())
        theirs.bias.data = torch.tensor(ours.bias.data)
    compare(torch, mlp, twin, X)


def test_many_heads(torch):
    layer = MultiHeadAttention(8, 2, np.random.default_rng(5)).double()
    twin = torch.nn.MultiheadAttention(8, 2, batch_first=True).double()
    qkv = (layer.c_q, layer.c_k, layer.c_v)
    twin.in_proj_weight.data = torch.tensor(np.concatenate([c.weight.data.T for c in qkv]))
    twin.in_proj_bias.data = torch.tensor(np.concatenate([c.bias.data for c in qkv]))
    twin.out_proj.weight.data = torch.tensor(layer.c_proj.weight.data.T.copy())
    twin.out_proj.bias.data = torch.tensor(layer.c_proj.bias.data)
    hidden = torch.tensor(~causal_keep(3))
    x = np.random.default_rng(6).normal(size=(2, 3, 8))
    theirs = lambda x: twin(x, x, x, attn_mask=hidden)[0]  # noqa: E731
    compare(torch, lambda x: layer(x, causal_keep(3)), theirs, x)
