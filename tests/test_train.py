"""Training: the optimizer against PyTorch's, and a loop that stops only between steps."""

import os
import signal

import numpy as np
import pytest

from course_lib.gpt import GPT, GPTConfig
from course_lib.nn import MLP
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


def test_a_step_without_gradients_is_refused():
    _, _, optimizer, _ = new_run()
    with pytest.raises(RuntimeError, match=r"call loss.backward\(\) first"):
        optimizer.step()


def test_the_rate_rises_and_falls_to_a_tenth():
    shares = [warmup_cosine(step, 100, 10) for step in range(101)]
    assert shares[0] == pytest.approx(0.1) and shares[9] == 1
    assert shares[10] == pytest.approx(1) and shares[55] == pytest.approx(0.55)
    assert shares[100] == pytest.approx(0.1)
    assert shares[10:] == sorted(shares[10:], reverse=True)


def test_a_text_that_counts_is_learned():
    model, stream, optimizer, history = new_run()
    assert train(model, stream, 150, optimizer, history, progress=False)
    assert len(history.loss) == len(history.lr) == len(history.grad_norm) == 150
    assert history.loss[0] > 1.5
    assert evaluate(model, stream, 5) < 0.2


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


def test_a_loss_that_is_not_finite_stops_before_the_step():
    model, stream, optimizer, history = new_run()
    train(model, stream, 3, optimizer, history, progress=False)
    state = model.state_dict()
    forward = model.forward
    model.forward = lambda *args: (None, forward(*args)[1] * 1e38 * 1e38)
    with pytest.raises((FloatingPointError, ValueError), match=r"step 3|NaN"):
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
