"""The tiny GPT: generation, and the file that holds it."""

import numpy as np
import pytest

from course_lib.gpt import GPT, GPTConfig

CONFIG = GPTConfig(vocab_size=11, block_size=8, n_layer=2, n_head=2, n_embd=8)
PROMPT = np.arange(5)


@pytest.fixture
def model():
    return GPT(CONFIG, np.random.default_rng(0)).double()


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
        (PROMPT, {"n": 1, "temperature": -1}, ValueError, "temperature"),
        (PROMPT, {"n": 1}, TypeError, "rng"),
        ([], {"n": 1, "temperature": 0}, ValueError, "at least one"),
        ([11], {"n": 1, "temperature": 0}, IndexError, "11"),
    ],
)
def test_what_can_not_be_generated_is_refused_in_words(model, ids, given, kind, words):
    with pytest.raises(kind, match=words):
        model.generate(ids, **given)


def test_more_tokens_than_positions_are_refused(model):
    with pytest.raises(ValueError, match="block_size = 8"):
        model(np.zeros((1, 9), int))


def test_a_saved_model_is_the_same_model(model, tmp_path):
    model.save(tmp_path / "model.npz")
    other = GPT(CONFIG, np.random.default_rng(1)).double()
    other.load(tmp_path / "model.npz")
    assert np.array_equal(other(PROMPT[None])[0].data, model(PROMPT[None])[0].data)
    assert [p.name for p in tmp_path.iterdir()] == ["model.npz"]


def test_a_save_that_fails_leaves_the_old_file(model, tmp_path, monkeypatch):
    path = tmp_path / "model.npz"
    model.save(path)
    before = path.read_bytes()

    def half(file, **arrays):
        file.write(b"half a file")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", half)
    with pytest.raises(KeyboardInterrupt):
        model.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.npz"]


def damaged(path, how):
    """Write the file anew, damaged in one of several ways."""
    if how == "truncated":
        path.write_bytes(path.read_bytes()[:-200])
    elif how == "text":
        path.write_text("no model", encoding="utf-8")
    elif how == "pickle":
        np.savez(path, evil=np.array([{"a": 1}], dtype=object))
    else:
        with np.load(path) as archive:
            arrays = dict(archive)
        name = "wte.weight"
        if how == "missing":
            del arrays[name]
        elif how == "foreign":
            arrays["stranger"] = np.zeros(3)
        elif how == "shape":
            arrays[name] = arrays[name][:-1]
        elif how == "nan":
            arrays[name] = arrays[name] * np.nan
        else:
            arrays["config.n_head"] = np.array(4)
        np.savez(path, **arrays)


@pytest.mark.parametrize(
    "how", ["truncated", "text", "pickle", "missing", "foreign", "shape", "nan", "config"]
)
def test_a_damaged_file_is_refused_and_the_model_untouched(model, tmp_path, how):
    path = tmp_path / "model.npz"
    GPT(CONFIG, np.random.default_rng(2)).save(path)
    damaged(path, how)
    before = {name: values.copy() for name, values in model.state_dict().items()}
    with pytest.raises(ValueError, match="load"):
        model.load(path)
    assert all(np.array_equal(before[name], v) for name, v in model.state_dict().items())


class Hostile:
    """Leaves a file behind if it is ever unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w", -1, "utf-8")


def test_nothing_in_a_file_is_executed(model, tmp_path):
    trace = tmp_path / "trace"
    np.savez(tmp_path / "model.npz", evil=np.array([Hostile(trace)], dtype=object))
    with pytest.raises(ValueError, match="load"):
        model.load(tmp_path / "model.npz")
    assert not trace.exists()


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
