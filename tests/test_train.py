"""Training: the optimizer as published, and a loop that stops only between steps."""

import math
import os
import signal
import threading
from unittest.mock import MagicMock

import numpy as np
import pytest
import tqdm.auto
import tqdm.notebook

from course_lib.gpt import GPT, GPTConfig
from course_lib.nn import MLP, Embedding, Module
from course_lib.tensor import Tensor
from course_lib.text import batches
from course_lib.train import AdamW, History, clip_grad_norm, evaluate, train, warmup_cosine

CONFIG = GPTConfig(vocab_size=7, block_size=8, n_layer=1, n_head=2, n_embd=8)


def new_run(seed=0):
    """Return a fresh model, its batches (of a text that counts), optimizer and history."""
    model = GPT(CONFIG, np.random.default_rng(seed))
    stream = batches(np.arange(200) % 7, 4, 8, np.random.default_rng(seed))
    return model, stream, AdamW(model, lr=1e-2), History()


def equal(model, state):
    return all(np.array_equal(values, state[name]) for name, values in model.state_dict().items())


class Small(Module):
    """One table, which does not decay, between the layers of an MLP, whose matrices do."""

    def __init__(self):
        self.mlp = MLP(2, np.random.default_rng(0))
        self.table = Embedding(3, 2, np.random.default_rng(1))


def as_published(theta, gradients, lr, decay, betas=(0.9, 0.99), eps=1e-8):
    """Loshchilov & Hutter 2019, algorithm 2, one number at a time."""
    m = v = 0.0
    for t, (g, rate) in enumerate(zip(gradients, lr, strict=True), start=1):
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        m_hat, v_hat = m / (1 - betas[0] ** t), v / (1 - betas[1] ** t)
        theta -= rate * (m_hat / (math.sqrt(v_hat) + eps) + decay * theta)
    return theta


@pytest.mark.parametrize(
    ("given", "size"),
    [
        ({}, 1),
        ({}, 1e-8),  # so small that eps counts
        ({"lr": 0.1, "betas": (0.5, 0.7), "eps": 0.2, "weight_decay": 0.3}, 1),
    ],
)
def test_adamw_is_what_was_published(given, size):
    model, rng = Small().double(), np.random.default_rng(1)
    optimizer, before = AdamW(model, **given), model.state_dict()
    gradients = {n: size * rng.normal(size=(4, *v.shape)) for n, v in before.items()}
    rates = [given.get("lr", 3e-3)] * 3 + [0.05]
    for i in range(4):
        for name, parameter in model.named_parameters():
            parameter.grad = gradients[name][i]
        optimizer.step(*([0.05] if i == 3 else []))
    options = {name: given[name] for name in ("betas", "eps") if name in given}
    for name, values in model.state_dict().items():
        matrix = name in ("mlp.c_fc.weight", "mlp.c_proj.weight")
        decay = given.get("weight_decay", 0.1) if matrix else 0
        for index in np.ndindex(values.shape):
            g = gradients[name][:, *index]
            expected = as_published(before[name][index], g, rates, decay, **options)
            assert values[index] == pytest.approx(expected, rel=1e-12)


def test_a_step_keeps_the_dtype_and_protects_the_new_values():
    model, stream, optimizer, _ = new_run()
    inputs, targets = next(stream)
    model(inputs, targets)[1].backward()
    optimizer.step()
    for parameter in model.parameters():
        assert parameter.dtype == np.float32
        with pytest.raises(ValueError, match="read-only"):
            parameter.data[...] = 0
    assert all(parameter.grad is not None for parameter in model.parameters())
    optimizer.zero_grad()
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.torch
def test_adamw_is_that_of_pytorch(torch):
    model = MLP(4, np.random.default_rng(0)).double()
    twins = [torch.tensor(p.data.copy(), requires_grad=True) for p in model.parameters()]
    matrices = [t for t in twins if t.ndim > 1]
    groups = [
        {"params": matrices},
        {"params": [t for t in twins if t.ndim == 1], "weight_decay": 0},
    ]
    theirs = torch.optim.AdamW(groups, lr=0.02, betas=(0.9, 0.99), weight_decay=0.1)
    ours, rng = AdamW(model, lr=0.02), np.random.default_rng(1)
    for _ in range(5):
        for p, twin in zip(model.parameters(), twins, strict=True):
            p.grad = rng.normal(size=p.shape)
            twin.grad = torch.tensor(p.grad.copy())
        ours.step()
        theirs.step()
    for p, twin in zip(model.parameters(), twins, strict=True):
        assert np.allclose(p.data, twin.detach().numpy(), rtol=0, atol=1e-12)


def test_embeddings_norms_and_biases_do_not_decay():
    model, _, optimizer, _ = new_run()
    before = model.state_dict()
    for p in model.parameters():
        p.grad = np.zeros(p.shape, p.dtype)  # so that only the decay moves anything
    optimizer.step()
    moved = {n for n, values in model.state_dict().items() if not np.array_equal(values, before[n])}
    linear = ("attn.c_q", "attn.c_k", "attn.c_v", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")
    assert moved == {f"blocks.0.{layer}.weight" for layer in linear}


@pytest.mark.torch
def test_clipping_is_that_of_pytorch(torch):
    model = MLP(4, np.random.default_rng(0)).double()
    twins, rng = [], np.random.default_rng(1)
    for p in model.parameters():
        p.grad = rng.normal(size=p.shape)
        twins.append(torch.nn.Parameter(torch.zeros(p.shape, dtype=torch.float64)))
        twins[-1].grad = torch.tensor(p.grad.copy())
    norm = clip_grad_norm(model.parameters(), 1.0)
    assert norm == pytest.approx(float(torch.nn.utils.clip_grad_norm_(twins, 1.0)))
    for p, twin in zip(model.parameters(), twins, strict=True):
        assert np.allclose(p.grad, twin.grad.numpy(), atol=1e-5)


@pytest.mark.parametrize(("max_norm", "shortened"), [(1.0, True), (13.0, False), (20.0, False)])
def test_gradients_longer_than_the_most_are_shortened_together(max_norm, shortened):
    one, other = Tensor([0.0, 0], requires_grad=True), Tensor([[0.0]], requires_grad=True)
    idle = Tensor([5.0], requires_grad=True)  # of a layer that took no part
    one.grad, other.grad = np.array([3.0, 4], np.float32), np.array([[12.0]], np.float32)
    assert clip_grad_norm(iter([one, idle, other]), max_norm) == pytest.approx(13)
    assert idle.grad is None
    factor = max_norm / 13 if shortened else 1
    assert one.grad == pytest.approx(factor * np.array([3, 4]))
    assert other.grad == pytest.approx(factor * np.array([[12]]))
    assert one.grad.dtype == np.float32


def test_a_step_without_gradients_is_refused():
    _, _, optimizer, _ = new_run()
    with pytest.raises(RuntimeError, match=r"call loss.backward\(\) first"):
        optimizer.step()


def test_the_rate_rises_and_falls_to_a_tenth():
    shares = [warmup_cosine(step, 90, 10) for step in range(91)]
    assert shares[:10] == pytest.approx(np.arange(1, 11) / 10)
    assert shares[10] == 1 and shares[90] == pytest.approx(0.1)
    assert shares[30] == pytest.approx(0.1 + 0.9 * (1 + math.sqrt(0.5)) / 2)  # a quarter down
    assert shares[50] == pytest.approx(0.55)
    assert shares[10:] == sorted(shares[10:], reverse=True)


def test_a_text_that_counts_is_learned():
    model, stream, optimizer, history = new_run()
    assert train(model, stream, 150, optimizer, history, progress=False)
    assert len(history.loss) == len(history.lr) == len(history.grad_norm) == 150
    assert history.loss[0] > 1.5
    assert evaluate(model, stream, 5) < 0.2


@pytest.mark.parametrize(("steps", "warmup"), [(5, 1), (39, 1), (60, 3)])
def test_the_rate_warms_up_for_a_twentieth_of_the_steps(steps, warmup):
    model, stream, optimizer, history = new_run()
    train(model, stream, steps, optimizer, history, progress=False)
    assert history.lr == [1e-2 * warmup_cosine(step, steps, warmup) for step in range(steps)]


def test_steps_are_taken_at_that_rate():
    model, stream, optimizer, history = new_run()
    states = [model.state_dict()]
    train(model, stream, 60, optimizer, history, lambda _: states.append(model.state_dict()), False)
    # Adam's first step moves a weight by the rate itself, whatever its gradient is
    move = states[1]["wte.weight"] - states[0]["wte.weight"]
    assert np.abs(move).max() == pytest.approx(1e-2 / 3, rel=1e-3)


def test_the_history_tells_of_each_step_before_it_was_taken():
    model, stream, optimizer, history = new_run()
    inputs, targets = next(stream)
    forward = model.forward
    model.forward = lambda *args: (None, forward(*args)[1] * 1000)  # to have something to clip
    _, loss = model(inputs, targets)
    loss.backward()
    length = math.sqrt(sum((p.grad.astype(float) ** 2).sum() for p in model.parameters()))
    seen = []
    train(model, iter([(inputs, targets)]), 1, optimizer, history, seen.append, progress=False)
    assert history.loss == [loss.item()] and history.grad_norm == [pytest.approx(length)]
    assert length > 10 and seen == [history]
    clipped = math.sqrt(sum((p.grad.astype(float) ** 2).sum() for p in model.parameters()))
    assert clipped == pytest.approx(1)


def test_evaluate_is_the_mean_loss_and_records_nothing():
    model, stream, _, _ = new_run()
    drawn = [next(stream) for _ in range(4)]
    losses, forward = [], model.forward

    def watch(*args):
        out = forward(*args)
        losses.append(out[1])
        return out

    model.forward = watch
    rest = iter(drawn)
    mean = evaluate(model, rest, 3)
    assert mean == pytest.approx(np.mean([forward(*pair)[1].item() for pair in drawn[:3]]))
    assert len(losses) == 3 and not any(loss.requires_grad for loss in losses)
    assert next(rest) is drawn[3]


def test_a_thread_may_train_too_and_interrupts_mean_what_they_meant():
    model, stream, optimizer, history = new_run()
    before = signal.getsignal(signal.SIGINT)
    during = []
    options = {"callback": lambda _: during.append(signal.getsignal(signal.SIGINT))}
    thread = threading.Thread(
        target=train, args=(model, stream, 2, optimizer, history), kwargs={"progress": False}
    )
    thread.start()
    thread.join()
    assert len(history.loss) == 2
    assert train(model, stream, 3, optimizer, history, progress=False, **options)
    assert signal.getsignal(signal.SIGINT) == before and during[0] != before
    with pytest.raises(StopIteration):
        train(model, iter([]), 4, optimizer, history, progress=False)
    assert signal.getsignal(signal.SIGINT) == before


def test_the_bar_counts_on_with_loss_and_speed(capsys):
    model, stream, optimizer, history = new_run()
    train(model, stream, 2, optimizer, history, progress=False)
    out, err = capsys.readouterr()
    assert out == err == ""
    train(model, stream, 4, optimizer, history)
    out, err = capsys.readouterr()
    assert out == "" and " 2/4 [" in err and "it/s" not in err
    last = err.replace("\r", "\n").strip().splitlines()[-1]
    assert last.startswith("100%|") and " 4/4 [00:" in last
    assert f", loss={history.loss[-1]:.3f}, tokens_per_s=" in last


def test_the_speed_is_in_tokens(monkeypatch):
    bar = MagicMock()
    monkeypatch.setattr("course_lib.train._progress_bar", lambda *_: bar)
    model, stream, optimizer, history = new_run()
    for rate, speed in ((None, "0"), (50, "1,600")):  # steps of 4 · 8 tokens a second
        bar.format_dict = {"rate": rate}
        train(model, stream, len(history.loss) + 1, optimizer, history)
        assert bar.set_postfix.call_args.kwargs["tokens_per_s"] == speed
        assert not bar.set_postfix.call_args.kwargs["refresh"]  # `update` draws, and seldom


def test_in_a_notebook_the_bar_is_a_widget_with_a_text_for_pages_without_one(monkeypatch, capsys):
    shown, bars = [], []

    class Kept(tqdm.notebook.tqdm):
        def __init__(self, **options):
            super().__init__(**options)
            bars.append(self)

    monkeypatch.setattr(tqdm.notebook, "tqdm", Kept)
    monkeypatch.setattr(tqdm.auto, "tqdm", Kept)
    monkeypatch.setattr("course_lib.train.display", lambda *args, **kw: shown.append((args, kw)))
    model, stream, optimizer, history = new_run()
    train(model, stream, 1, optimizer, history, progress=False)
    assert not shown
    train(model, stream, 3, optimizer, history)
    assert (bars[-1].initial, bars[-1].n, bars[-1].total) == (1, 3, 3)
    layout = bars[-1].container.layout
    assert (layout.width, layout.overflow) == ("100%", "visible")
    [((bundle,), options)] = shown
    assert options == {"raw": True}
    assert bundle["text/plain"] == "(a progress bar, while the cell runs)"
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert capsys.readouterr() == ("", "")


def test_an_interrupt_waits_for_the_whole_step_and_training_goes_on():
    model, stream, optimizer, history = new_run()

    def stop_at_7(history):
        if len(history.loss) == 7:
            os.kill(os.getpid(), signal.SIGINT)

    assert not train(model, stream, 20, optimizer, history, stop_at_7, progress=False)
    assert len(history.loss) == 7
    assert train(model, stream, 20, optimizer, history, progress=False)

    whole, stream, optimizer, record = new_run()
    assert train(whole, stream, 20, optimizer, record, progress=False)
    assert history == record and equal(model, whole.state_dict())


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (
            lambda loss: loss + math.inf,
            FloatingPointError,
            r"at step 3 the loss is inf .*\(0.0087\)",
        ),
        (lambda loss: loss * 1e38, FloatingPointError, r"at step 3 .* gradient's length inf;"),
        (lambda loss: loss * 1e38 * 1e38, ValueError, "NaN"),
    ],
)
def test_numbers_that_are_not_finite_stop_before_the_step(change, kind, words):
    model, stream, optimizer, history = new_run()
    train(model, stream, 3, optimizer, history, progress=False)
    state = model.state_dict()
    forward = model.forward
    model.forward = lambda *args: (None, change(forward(*args)[1]))
    with pytest.raises(kind, match=words):
        train(model, stream, 9, optimizer, history, progress=False)
    assert len(history.loss) == 3 and equal(model, state)


def test_the_optimizer_of_another_model_is_refused():
    model, stream, _, history = new_run()
    _, _, other, _ = new_run()
    with pytest.raises(ValueError, match="another model"):
        train(model, stream, 1, other, history, progress=False)


def test_each_step_starts_with_no_old_gradients():
    model, stream, _, history = new_run()
    same = next(stream)
    standing_still = AdamW(model, lr=0.0)
    train(model, iter([same] * 4), 4, standing_still, history, progress=False)
    assert history.grad_norm == [history.grad_norm[0]] * 4


def test_weights_loaded_after_the_optimizer_was_made_are_the_ones_that_move():
    model, _, optimizer, _ = new_run()
    other = GPT(CONFIG, np.random.default_rng(5)).state_dict()
    model.load_state_dict(other)
    for p in model.parameters():
        p.grad = np.ones_like(p.data)
    optimizer.step(lr=1e-3)
    for name, values in model.state_dict().items():
        assert 0 < np.abs(values - other[name]).max() < 0.01, name


def test_a_step_leaves_the_values_that_a_graph_still_holds():
    model, stream, optimizer, _ = new_run()
    before = model.state_dict()
    held = {name: p.data for name, p in model.named_parameters()}
    _, loss = model(*next(stream))
    loss.backward()
    optimizer.step()
    assert all(np.array_equal(held[name], values) for name, values in before.items())
    with pytest.raises(ValueError, match="read-only"):
        model.wte.weight.data[0] = 0
