"""The tiny GPT: what it computes and how it writes."""

import numpy as np
import pytest

from course_lib.attention import causal_mask
from course_lib.gpt import GPT, Block, GPTConfig
from course_lib.tensor import Tensor, no_grad

CONFIG = GPTConfig(vocab_size=11, block_size=8, n_layer=2, n_head=2, n_embd=8)
PROMPT = np.arange(5)


@pytest.fixture
def model():
    return GPT(CONFIG, np.random.default_rng(0)).double()


def normed(x, weight, bias):
    x = x - x.mean(axis=-1, keepdims=True)
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5) * weight + bias


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def in_numpy(p, ids):
    """The tokens' vectors [B, T, D] on each level, and the logits, from the parameters by name."""
    b, t = ids.shape
    x = p["wte.weight"][ids] + p["wpe.weight"][:t]
    levels = [x]
    for n in ("blocks.0", "blocks.1"):
        y = normed(x, p[f"{n}.ln_1.weight"], p[f"{n}.ln_1.bias"])
        q, k, v = (
            (y @ p[f"{n}.attn.c_{c}.weight"] + p[f"{n}.attn.c_{c}.bias"]).reshape(b, t, 2, 4)
            for c in "qkv"
        )
        scores = np.einsum("bihd,bjhd->bhij", q, k) / 2 + causal_mask(t)
        heads = np.einsum("bhij,bjhd->bihd", softmax(scores), v).reshape(b, t, 8)
        x = x + heads @ p[f"{n}.attn.c_proj.weight"] + p[f"{n}.attn.c_proj.bias"]
        y = normed(x, p[f"{n}.ln_2.weight"], p[f"{n}.ln_2.bias"])
        y = y @ p[f"{n}.mlp.c_fc.weight"] + p[f"{n}.mlp.c_fc.bias"]
        y = y / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3)))
        x = x + y @ p[f"{n}.mlp.c_proj.weight"] + p[f"{n}.mlp.c_proj.bias"]
        levels.append(x)
    return levels, normed(x, p["ln_f.weight"], p["ln_f.bias"]) @ p["wte.weight"].T


def spread(model):
    """The model with every parameter moved, so that no scale is 1 and no shift 0."""
    rng = np.random.default_rng(5)
    for parameter in model.parameters():
        parameter.data = parameter.data + 0.3 * rng.normal(size=parameter.shape)
    return model


def test_logits_and_loss_are_those_of_the_formulas(model):
    ids = np.random.default_rng(1).integers(11, size=(3, 7))
    targets = np.random.default_rng(2).integers(11, size=(3, 7))
    targets[0, :4] = -100
    levels, expected = in_numpy(spread(model).state_dict(), ids)
    logits, loss = model(ids, targets)
    assert np.allclose(logits.data, expected, rtol=0, atol=1e-12)
    log_p = np.log(softmax(expected))
    counted = [log_p[b, t, targets[b, t]] for b, t in np.argwhere(targets >= 0)]
    assert loss.item() == pytest.approx(-np.mean(counted))
    assert model(ids)[1] is None

    again, loss_again, steps = model(ids, targets, return_steps=True)
    assert np.allclose(again.data, expected, rtol=0, atol=1e-12)
    assert loss_again.item() == pytest.approx(loss.item())
    assert len(steps.hidden) == 3 and len(steps.attention) == 2
    for found, wanted in zip(steps.hidden, levels, strict=True):
        assert np.allclose(found.data, wanted, rtol=0, atol=1e-12)
    for attention in steps.attention:
        weights = attention.weights.data
        assert weights.shape == (3, 2, 7, 7) and np.allclose(weights.sum(axis=-1), 1)


def test_a_block_alone_maps_tokens_to_tokens():
    block = Block(8, 2, np.random.default_rng(0))
    x = Tensor(np.random.default_rng(1).normal(size=(2, 3, 8)).astype(np.float32))
    out, steps = block(x, causal_mask(3), return_steps=True)
    assert out.shape == (2, 3, 8) and steps.weights.shape == (2, 2, 3, 3)
    assert np.allclose(block(x, causal_mask(3)).data, out.data, atol=1e-6)


def test_the_tiny_configuration():
    assert GPTConfig.tiny(7) == GPTConfig(7, block_size=64, n_layer=2, n_head=4, n_embd=64)
    assert GPTConfig.tiny(7, 5, 3) == GPTConfig(7, 5, 3, 4, 64)


def test_embeddings_start_with_a_variance_of_one_over_their_width():
    model = GPT(GPTConfig(500, 400, 1, 1, 16), np.random.default_rng(0))
    for table in (model.wte.weight, model.wpe.weight):
        assert table.dtype == np.float32
        assert table.data.std() == pytest.approx(0.25, rel=0.05)


def test_the_mask_is_asked_for_the_new_and_for_all_tokens():
    asked = []

    def mask(t, t_total):
        asked.append((t, t_total))
        return causal_mask(t, t_total)

    model = GPT(CONFIG, np.random.default_rng(0), mask)
    cache = model.new_cache()
    with no_grad():
        model(PROMPT[None], cache=cache)
        model(PROMPT[None, :2], cache=cache)
    assert asked == [(5, 5), (2, 7)]


def test_ids_without_a_batch_axis_are_refused(model):
    with pytest.raises(ValueError, match=r"GPT: ids must be \[B, T\], got \[5\]"):
        model(PROMPT)


def test_a_cache_of_another_model_is_refused(model):
    with no_grad(), pytest.raises(ValueError, match="zip"):
        model(PROMPT[None], cache=model.new_cache()[:1])


# -- generation ------------------------------------------------------------------------------------


def with_logits(model, rows):
    """The model, as if these were its logits [B, vocab_size] for the next token, always."""
    rows = np.asarray(rows, dtype=float)
    model.forward = lambda ids, cache=None: (Tensor(np.repeat(rows[:, None], 2, axis=1)), None)
    return model


@pytest.mark.parametrize(
    ("given", "scale", "kept"),
    [
        ({}, 1, 4),
        ({"temperature": 0.5}, 2, 4),
        ({"temperature": 3}, 1 / 3, 4),
        ({"top_k": 2}, 1, 2),
    ],
)
def test_tokens_are_drawn_as_often_as_the_model_says(model, given, scale, kept):
    logits = np.array([[0.5, 2.0, 1.0, 0.0], [3.0, 1.5, 2.5, 2.0]])
    expected = np.array([np.where(row < np.sort(row)[-kept], -np.inf, row) for row in logits])
    expected = softmax(expected * scale)
    n = 6000
    model = with_logits(model, np.repeat(logits, n, axis=0))
    model.config = GPTConfig(4, 8, 2, 2, 8)
    text = model.generate(np.zeros((2 * n, 3), int), 1, rng=np.random.default_rng(0), **given)
    assert text.shape == (2 * n, 4) and not text[:, :3].any()
    for drawn, weights in zip(text[:, 3].reshape(2, n), expected, strict=True):
        assert np.bincount(drawn, minlength=4) / n == pytest.approx(weights, abs=0.025)


def test_a_temperature_near_0_is_as_good_as_0(model):
    logits = [[700.0, 900, 800], [-3, -1, -2]]
    drawn = with_logits(model, logits).generate(
        np.zeros((2, 3), int), 2, temperature=1e-3, rng=np.random.default_rng(0)
    )
    assert drawn[:, 3:].tolist() == [[1, 1], [1, 1]]


def test_of_equally_likely_tokens_top_k_keeps_the_first():
    model = GPT(GPTConfig(400, 8, 1, 1, 2), np.random.default_rng(0))
    odd_ones = np.tile(np.arange(400) % 2, (100, 1))
    text = with_logits(model, odd_ones).generate(
        np.zeros((100, 1), int), 1, top_k=3, rng=np.random.default_rng(0)
    )
    assert set(text[:, 1].tolist()) == {1, 3, 5}


def test_several_texts_grow_side_by_side(model):
    prompts = np.array([[1, 2, 3], [7, 8, 9]])
    texts = model.generate(prompts, 4, temperature=0)
    assert texts.shape == (2, 7)
    for prompt, text in zip(prompts, texts, strict=True):
        assert np.array_equal(text, model.generate(prompt, 4, temperature=0))


def test_no_tokens_more_is_the_same_text(model):
    assert np.array_equal(model.generate(PROMPT, 0, temperature=0), PROMPT)


def test_top_k_of_the_whole_vocabulary_is_no_limit(model):
    texts = [
        model.generate(PROMPT, 9, top_k=k, rng=np.random.default_rng(0)).tolist()
        for k in (11, None)
    ]
    assert texts[0] == texts[1]


def test_with_a_cache_only_what_is_new_is_computed(model):
    seen = []
    forward = model.forward

    def watch(ids, *args, **kwargs):
        seen.append(ids.shape[1])
        return forward(ids, *args, **kwargs)

    model.forward = watch
    model.generate(PROMPT, 6, temperature=0)
    assert seen == [5, 1, 1, 1, 8, 8]  # past block_size = 8 every token has a new position


@pytest.mark.parametrize("prompt", [PROMPT, np.arange(12) % 11])
def test_b18_text_may_grow_past_the_window(model, prompt):
    seen = []
    forward = model.forward

    def watch(ids, *args, **kwargs):
        seen.append(ids.shape[1])
        return forward(ids, *args, **kwargs)

    model.forward = watch
    without = model.generate(prompt, 10, temperature=0, cache=False)
    assert len(without) == len(prompt) + 10
    assert seen == [min(len(prompt) + n, 8) for n in range(10)]
    assert np.array_equal(model.generate(prompt, 10, temperature=0, cache=True), without)


def test_b19_temperature_0_takes_the_likeliest_every_time(model):
    logits = model(PROMPT[None])[0].data[0, -1]
    for _ in range(3):
        assert model.generate(PROMPT, 1, temperature=0)[-1] == logits.argmax()


def test_the_same_seed_draws_the_same_text_with_and_without_a_cache(model):
    texts = [
        model.generate(PROMPT, 20, rng=np.random.default_rng(3), cache=cache).tolist()
        for cache in (True, False, True)
    ]
    assert texts[0] == texts[1] == texts[2]


def test_top_k_of_1_is_the_likeliest(model):
    drawn = model.generate(PROMPT, 6, top_k=1, rng=np.random.default_rng(0))
    assert np.array_equal(drawn, model.generate(PROMPT, 6, temperature=0))


@pytest.mark.parametrize(
    ("ids", "given", "kind", "words"),
    [
        (PROMPT, {"n": -1}, ValueError, "n must"),
        (PROMPT, {"n": 1, "top_k": 0, "rng": np.random.default_rng(0)}, ValueError, "top_k"),
        (PROMPT, {"n": 1, "top_k": 12, "rng": np.random.default_rng(0)}, ValueError, "1 … 11"),
        (PROMPT, {"n": 1.0}, ValueError, "n must be .* got 1.0"),
        (PROMPT, {"n": 1, "top_k": 1.0, "rng": np.random.default_rng(0)}, ValueError, "got 1.0"),
        (PROMPT, {"n": 1, "temperature": -1}, ValueError, "temperature .* got -1"),
        (PROMPT, {"n": 1, "temperature": np.inf}, ValueError, "temperature .* got inf"),
        (PROMPT, {"n": 1}, TypeError, "rng"),
        ([], {"n": 1, "temperature": 0}, ValueError, r"ids \[0\] must .* at least one"),
        (np.ones((1, 1, 2), int), {"n": 1, "temperature": 0}, ValueError, r"ids \[1, 1, 2\] must"),
        ([11], {"n": 1, "temperature": 0}, IndexError, "11"),
    ],
)
def test_what_can_not_be_generated_is_refused_in_words(model, ids, given, kind, words):
    with pytest.raises(kind, match=words):
        model.generate(ids, **given)


def test_cached_and_whole_logits_agree_for_every_split():
    model = GPT(GPTConfig(11, 9, 2, 2, 8), np.random.default_rng(7)).double()
    ids = np.random.default_rng(8).integers(11, size=(2, 9))
    with no_grad():
        whole = model(ids)[0].data
        for n in range(1, 9):
            cache = model.new_cache(2)
            parts = [model(ids[:, :n], cache=cache)[0].data]
            parts += [model(ids[:, [i]], cache=cache)[0].data for i in range(n, 9)]
            assert np.abs(np.concatenate(parts, axis=1) - whole).max() < 1e-10


def test_more_tokens_than_positions_are_refused(model):
    with pytest.raises(ValueError, match="block_size = 8"):
        model(np.zeros((1, 9), int))


@pytest.mark.torch
def test_logits_loss_and_all_gradients_are_those_of_pytorch(torch, model):
    f = torch.nn.functional
    p = {n: torch.tensor(v, requires_grad=True) for n, v in model.state_dict().items()}
    ids = np.random.default_rng(4).integers(11, size=(3, 9))
    inputs, targets = torch.tensor(ids[:, :-1]), torch.tensor(ids[:, 1:])

    def linear(name, x):
        return x @ p[f"{name}.weight"] + p[f"{name}.bias"]

    def norm(name, x):
        return f.layer_norm(x, (8,), p[f"{name}.weight"], p[f"{name}.bias"])

    x = p["wte.weight"][inputs] + p["wpe.weight"]
    for n in ("blocks.0", "blocks.1"):
        y = norm(f"{n}.ln_1", x)
        q, k, v = (linear(f"{n}.attn.c_{c}", y).reshape(3, 8, 2, 4).transpose(1, 2) for c in "qkv")
        heads = f.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(f"{n}.attn.c_proj", heads.transpose(1, 2).reshape(3, 8, 8))
        y = f.gelu(linear(f"{n}.mlp.c_fc", norm(f"{n}.ln_2", x)), approximate="tanh")
        x = x + linear(f"{n}.mlp.c_proj", y)
    expected = norm("ln_f", x) @ p["wte.weight"].T
    expected_loss = f.cross_entropy(expected.reshape(-1, 11), targets.reshape(-1))
    expected_loss.backward()

    logits, loss = model(ids[:, :-1], ids[:, 1:])
    loss.backward()
    assert np.abs(logits.data - expected.detach().numpy()).max() < 1e-9
    assert abs(loss.item() - expected_loss.item()) < 1e-9
    for name, parameter in model.named_parameters():
        assert np.abs(parameter.grad - p[name].grad.numpy()).max() < 1e-9, name
