"""Lesson 09: its forward is the library's GPT, and its helpers do what the library does.

Its trainings are not repeated here: the tests under nbval run them.
"""

import copy

import executed
import numpy as np
import pytest

from course_lib.attention import causal_mask
from course_lib.functional import cross_entropy
from course_lib.gpt import GPT, GPTConfig
from course_lib.nn import Linear
from course_lib.text import WordTokenizer, batches
from course_lib.train import AdamW, History, train


@pytest.fixture(scope="module")
def lesson():
    return executed.names_of("09")


@pytest.fixture(params=range(3))
def rng(request):
    return np.random.default_rng(request.param)


@pytest.fixture
def model(rng):
    return GPT(GPTConfig(vocab_size=9, block_size=14, n_layer=2, n_head=3, n_embd=6), rng).double()


def test_forward_is_the_librarys_gpt_with_every_gradient(lesson, model, rng):
    ids, targets = rng.integers(0, 9, size=(2, 4, 7))  # [B, T] each
    twin = copy.deepcopy(model)
    ours = lesson["forward"](model, ids)
    theirs, loss = twin(ids, targets)
    np.testing.assert_allclose(ours.data, theirs.data, rtol=1e-9, atol=1e-12)
    cross_entropy(ours, targets).backward()
    loss.backward()
    for (name, p), q in zip(model.named_parameters(), twin.parameters(), strict=True):
        np.testing.assert_allclose(p.grad, q.grad, rtol=1e-7, atol=1e-12, err_msg=name)


def test_targets_are_shifted_as_the_librarys_batches_are(lesson, rng):
    inputs, targets = next(batches(rng.integers(0, 50, size=100), 4, 8, rng))
    windows = np.concatenate([inputs, targets[:, -1:]], axis=1)  # [B, T + 1]
    ours = lesson["shift_targets"](windows)
    np.testing.assert_array_equal(ours[0], inputs)
    np.testing.assert_array_equal(ours[1], targets)


def test_fit_walks_down_as_a_layer_of_the_library_does(lesson, rng):
    x, y, w = rng.normal(size=(20, 3)), rng.normal(size=20), rng.normal(size=3)
    layer = Linear(3, 1, rng, bias=False).double()
    layer.weight.data = w[:, None]
    losses = []
    for _ in range(6):
        layer.zero_grad()
        loss = ((layer(x) - y[:, None]) ** 2).mean()
        loss.backward()
        layer.weight.data = layer.weight.data - 0.1 * layer.weight.grad
        losses.append(loss.item())
    assert lesson["fit"](w, x, y, 0.1, 6) == pytest.approx(losses, rel=1e-9)


@pytest.mark.parametrize(("t", "t_total"), [(1, 1), (5, 5), (2, 6), (1, 8)])
def test_the_leaking_masks_differ_from_the_librarys_as_they_say(lesson, t, t_total):
    right = causal_mask(t, t_total)
    assert not lesson["no_mask"](t, t_total).any()
    not_itself = lesson["not_itself"](t, t_total)  # j ≥ i + base: each query loses its last key
    np.testing.assert_array_equal(not_itself[:, :-1], right[:, 1:])
    assert np.isneginf(not_itself[:, -1]).all()


def test_unshifted_targets_are_the_inputs(lesson, rng):
    ids = rng.integers(0, 50, size=100)
    state = rng.bit_generator.state
    stream = lesson["unshifted"](batches(ids, 4, 8, rng))
    found = [next(stream) for _ in range(3)]
    rng.bit_generator.state = state  # the same batches again
    for (inputs, targets), (right, _) in zip(found, batches(ids, 4, 8, rng), strict=False):
        np.testing.assert_array_equal(inputs, right)
        np.testing.assert_array_equal(targets, right)


def test_the_likeliest_next_word_is_what_generate_takes(lesson, model, monkeypatch):
    tokenizer = WordTokenizer("a b c d e f g h i")
    monkeypatch.setitem(lesson, "tokenizer", tokenizer)
    monkeypatch.setitem(lesson, "model", model)
    for sentence in ("a", "c b a", "i h g f e d"):
        weights = lesson["next_word"](sentence)
        assert weights.shape == (9,) and weights.sum() == pytest.approx(1)
        ids = tokenizer.encode(sentence)
        assert weights.argmax() == model.generate(ids, 1, temperature=0)[-1]


def test_writing_loss_is_the_models_loss_at_the_last_word(lesson, model, rng, monkeypatch):
    val_ids = rng.integers(0, 9, size=300)
    monkeypatch.setitem(lesson, "val_ids", val_ids)
    seen, targets = next(batches(val_ids, 200, 12, np.random.default_rng(3)))
    only_last = np.where(np.arange(12) == 11, targets, -100)
    assert lesson["writing_loss"](model) == pytest.approx(model(seen, only_last)[1].item())


def test_the_film_keeps_the_weights_of_every_head(lesson, model, rng, monkeypatch):
    class Curve:
        def __init__(self):
            self.controls = {"step": self}

    ids = rng.integers(0, 9, size=100)
    curve, film, history = Curve(), {}, History()
    tokenizer = WordTokenizer("a b c d e f g h i")
    given = {"model": model, "tokenizer": tokenizer, "river": "c b a", "film": film, "curve": curve}
    for name, value in given.items():
        monkeypatch.setitem(lesson, name, value)
    train(model, batches(ids, 2, 6, rng), 30, AdamW(model), history, lesson["watch"], False)
    assert list(film) == [25] and curve.value == 30
    assert film[25].shape == (2 * 3, 3, 3)  # [layers · heads, T, T]
    np.testing.assert_allclose(film[25].sum(axis=-1), 1)
    assert not np.triu(film[25], 1).any()
