"""Layers: what they compute, how their weights start, and how a model names its parameters."""

import numpy as np
import pytest

from course_lib.gradcheck import check_gradients
from course_lib.nn import MLP, Embedding, LayerNorm, Linear, Module
from course_lib.tensor import Tensor

X = np.random.default_rng(0).normal(size=(2, 3, 4))


def new_rng():
    return np.random.default_rng(1)


class Tree(Module):
    """Modules in attributes, in a list and in a tuple; one weight in two places; no parameters."""

    def __init__(self):
        self.width = 4
        self.first = Linear(4, 2, new_rng())
        self.blocks = [LayerNorm(2), Linear(2, 2, new_rng(), bias=False)]
        self.pair = (Embedding(3, 2, new_rng()),)
        self.tied = self.pair[0].weight
        self.constant = Tensor([1.0, 2.0])


NAMES = [
    "first.weight",
    "first.bias",
    "blocks.0.weight",
    "blocks.0.bias",
    "blocks.1.weight",
    "pair.0.weight",
]


def test_linear_is_xw_plus_b_along_the_last_axis():
    layer = Linear(4, 5, new_rng()).double()
    w, b = layer.weight.data, layer.bias.data
    assert (w.shape, b.shape) == ((4, 5), (5,))
    for x in (X, X[0], X[0, 0]):
        assert np.allclose(layer(Tensor(x)).data, x @ w + b, rtol=0, atol=1e-14)
    assert check_gradients(layer, X)
    bare = Linear(4, 5, new_rng(), bias=False).double()
    assert bare.bias is None
    assert np.array_equal(bare(x=Tensor(X)).data, X @ bare.weight.data)


def test_linear_starts_uniform_within_one_over_the_root_of_its_inputs():
    layer = Linear(25, 400, new_rng())
    for values in (layer.weight.data, layer.bias.data):
        assert values.dtype == np.float32
        assert -0.2 <= values.min() < -0.19 and 0.19 < values.max() <= 0.2
        assert values.std() == pytest.approx(0.2 / 3**0.5, rel=0.1)
    assert layer.weight.requires_grad and layer.bias.requires_grad


def test_an_embedding_starts_standard_normal_and_looks_rows_up():
    layer = Embedding(200, 30, new_rng())
    table = layer.weight.data
    assert table.dtype == np.float32 and table.shape == (200, 30) and layer.weight.requires_grad
    assert table.mean() == pytest.approx(0, abs=0.05) and table.std() == pytest.approx(1, abs=0.05)
    ids = [[0, 199, 5], [5, 5, 1]]
    assert np.array_equal(layer(ids).data, table[ids])


def test_a_layer_norm_starts_without_scale_and_shift():
    layer = LayerNorm(4)
    assert layer.weight.data.tolist() == [1] * 4 and layer.bias.data.tolist() == [0] * 4
    for parameter in (layer.weight, layer.bias):
        assert parameter.requires_grad and parameter.dtype == np.float32


@pytest.mark.parametrize("eps", [None, 0.5])
def test_a_layer_norm_gives_each_vector_mean_0_and_variance_1(eps):
    layer = (LayerNorm(4) if eps is None else LayerNorm(4, eps)).double()
    layer.weight.data, layer.bias.data = [1.0, 2, 3, 4], [5.0, 6, 7, 8]
    centered = X - X.mean(axis=-1, keepdims=True)
    root = np.sqrt(X.var(axis=-1, keepdims=True) + (eps or 1e-5))
    expected = centered / root * layer.weight.data + layer.bias.data
    assert np.allclose(layer(Tensor(X)).data, expected, rtol=0, atol=1e-12)


def test_an_mlp_is_four_times_as_wide_inside():
    mlp = MLP(4, new_rng()).double()
    assert (mlp.c_fc.weight.shape, mlp.c_proj.weight.shape) == ((4, 16), (16, 4))
    assert not np.array_equal(mlp.c_fc.weight.data, mlp.c_proj.weight.data.T)
    h = X @ mlp.c_fc.weight.data + mlp.c_fc.bias.data
    gelu = h / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))
    expected = gelu @ mlp.c_proj.weight.data + mlp.c_proj.bias.data
    assert np.allclose(mlp(Tensor(X)).data, expected, rtol=0, atol=1e-14)
    x = Tensor(X, requires_grad=True)
    grads = []
    for out in (mlp(x), mlp.c_proj(mlp.c_fc(x).gelu())):  # as one operation, and as three
        x.grad = None
        mlp.zero_grad()
        out.backward(X[::-1])
        grads.append([x.grad, *[p.grad for p in mlp.parameters()]])
    for one, other in zip(*grads, strict=True):
        assert np.allclose(one, other, rtol=0, atol=1e-13)


def test_parameters_are_found_in_the_order_they_were_made_each_once():
    tree = Tree()
    assert [name for name, _ in tree.named_parameters()] == NAMES
    assert [id(p) for p in tree.parameters()] == [id(p) for _, p in tree.named_parameters()]
    assert tree.num_parameters() == 4 * 2 + 2 + 2 + 2 + 2 * 2 + 3 * 2
    parts = [tree, tree.first, *tree.blocks, *tree.pair]
    assert [id(m) for m in tree.modules()] == [id(m) for m in parts]


def test_zero_grad_forgets_every_gradient():
    tree = Tree()
    for parameter in tree.parameters():
        parameter.grad = np.ones(parameter.shape, np.float32)
    tree.zero_grad()
    assert all(parameter.grad is None for parameter in tree.parameters())


def test_double_keeps_values_and_trains_on():
    tree = Tree()
    before = tree.state_dict()
    assert tree.double() is tree and list(tree.state_dict()) == NAMES
    for name, parameter in tree.named_parameters():
        assert parameter.dtype == np.float64 and parameter.requires_grad
        assert np.array_equal(parameter.data, before[name])
    assert tree.tied is tree.pair[0].weight


def test_a_state_is_a_copy_that_another_module_can_take():
    tree, other = Tree(), Tree()
    state = tree.state_dict()
    assert list(state) == NAMES
    for values in state.values():
        values += 1  # a copy: the tree keeps its own
    other.load_state_dict(state)
    for (name, old), (_, new) in zip(
        tree.named_parameters(), other.named_parameters(), strict=True
    ):
        assert np.array_equal(new.data, state[name])
        assert np.allclose(new.data, old.data + 1)


def without(state):
    del state["first.bias"]


def with_a_stranger(state):
    state["stranger"] = np.zeros(2)


def of_another_shape(state):
    state["blocks.1.weight"] = np.zeros((2, 3))


def of_whole_numbers(state):
    state["blocks.1.weight"] = np.zeros((2, 2), int)


@pytest.mark.parametrize(
    ("spoil", "kind", "words"),
    [
        (without, KeyError, r"missing \['first.bias'\], not of this module \[\]"),
        (with_a_stranger, KeyError, r"missing \[\], not of this module \['stranger'\]"),
        (of_another_shape, ValueError, r"blocks.1.weight is \[2, 2\].*\[2, 3\] of float64"),
        (of_whole_numbers, ValueError, r"blocks.1.weight is \[2, 2\].*\[2, 2\] of int64"),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(spoil, kind, words):
    tree = Tree()
    before = tree.state_dict()
    state = {name: values + 1 for name, values in before.items()}
    spoil(state)
    with pytest.raises(kind, match=words):
        tree.load_state_dict(state)
    assert all(np.array_equal(before[name], values) for name, values in tree.state_dict().items())


@pytest.mark.parametrize("x", [np.ones((2, 3)), np.ones(()), np.ones((4, 1))])
def test_linear_names_the_width_it_needs(x):
    words = (
        rf"Linear: x is \[{', '.join(map(str, x.shape))}\], its last axis must be 4 \(in_features\)"
    )
    with pytest.raises(ValueError, match=words):
        Linear(4, 5, new_rng())(Tensor(x))


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda size: Linear(size, 2, new_rng()), "Linear: in_features"),
        (lambda size: Linear(2, size, new_rng()), "Linear: out_features"),
        (lambda size: Embedding(size, 2, new_rng()), "Embedding: num_embeddings"),
        (lambda size: Embedding(2, size, new_rng()), "Embedding: embedding_dim"),
        (lambda size: LayerNorm(size), "LayerNorm: normalized_shape"),
    ],
)
def test_sizes_are_whole_numbers_of_at_least_1(make, name):
    for size in (0, -1, 2.0, True, None):
        with pytest.raises(ValueError, match=f"{name} must be .* at least 1, got {size}"):
            make(size)
    make(1)
    make(np.int64(1))


@pytest.mark.parametrize("rng", [None, 0, np.random])
def test_a_layer_needs_a_generator(rng):
    for make in (lambda: Linear(2, 2, rng), lambda: Embedding(2, 2, rng)):
        name = "Linear|Embedding"
        with pytest.raises(TypeError, match=f"({name}): rng .*, got {type(rng).__name__}"):
            make()
