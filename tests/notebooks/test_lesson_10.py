"""Lesson 10: what it keeps, masks, embeds and sums in blocks is what the library does."""

import executed
import numpy as np
import pytest

from course_lib.attention import KVCache, attention, blocked_attention, causal_mask
from course_lib.gpt import GPT, GPTConfig
from course_lib.tensor import Tensor, no_grad


@pytest.fixture(scope="module")
def lesson():
    return executed.names_of("10")


@pytest.fixture(params=range(4))
def rng(request):
    return np.random.default_rng(request.param)


@pytest.fixture
def model(rng):
    return GPT(GPTConfig(vocab_size=9, block_size=12, n_layer=2, n_head=2, n_embd=8), rng).double()


@pytest.mark.parametrize(("base", "t"), [(0, 1), (0, 5), (4, 2), (7, 1), (3, 3)])
def test_the_mask_for_a_step_is_the_librarys(lesson, base, t):
    np.testing.assert_array_equal(lesson["mask_for_step"](base, t), causal_mask(t, base + t))


@pytest.mark.parametrize("steps", [[6], [4, 2], [1] * 6, [3, 1, 2]])
def test_attend_with_cache_is_the_librarys_with_and_without_a_cache(lesson, steps, rng):
    q, k, v = rng.normal(size=(3, 2, 6, 4))  # [B, T, d_k] each
    full = attention(q, k, v, causal_mask(6)).data
    cache = KVCache(2, 1, 6, 4, np.float64)
    cached_k = cached_v = np.zeros((2, 0, 4))
    start = 0
    for t in steps:
        new = slice(start, start + t)
        out, cached_k, cached_v = lesson["attend_with_cache"](
            q[:, new], k[:, new], v[:, new], cached_k, cached_v
        )
        np.testing.assert_allclose(out, full[:, new], rtol=1e-10)
        all_k, all_v = cache.append(Tensor(k[:, None, new]), Tensor(v[:, None, new]))
        np.testing.assert_array_equal(cached_k, all_k.data[:, 0])
        np.testing.assert_array_equal(cached_v, all_v.data[:, 0])
        start += t


def test_one_row_of_scores_gives_the_last_row_of_the_full_computation(rng):
    q, k, v = (Tensor(rng.normal(size=(3, 2))) for _ in range(3))
    names = executed.rerun("10", "k_all = np.concatenate", q=q, k=k, v=v)
    right = attention(q, k, v, causal_mask(3)).data[2:]
    np.testing.assert_allclose((names["weights"] @ names["v_all"]).data, right, rtol=1e-10)


def test_new_tokens_are_embedded_as_the_model_does_it(lesson, model, rng):
    ids = rng.integers(0, 9, size=(3, 7))
    tables = model.wte.weight.data, model.wpe.weight.data
    for base in (0, 1, 5):
        cache = model.new_cache(batch=3)
        with no_grad():
            if base:
                model(ids[:, :base], cache=cache)
            _, _, steps = model(ids[:, base:], cache=cache, return_steps=True)
        found = lesson["embed_new_tokens"](ids[:, base:], base, *tables)
        np.testing.assert_array_equal(found, steps.hidden[0].data)


def test_the_loop_that_appends_is_generate(model, rng):
    prompt = rng.integers(0, 9, size=5)
    names = executed.rerun("10", "text = np.append(text", model=model, prompt=prompt)
    np.testing.assert_array_equal(names["text"], model.generate(prompt, 6, temperature=0))


def test_the_running_sum_of_a_blocked_softmax_is_the_librarys(lesson, rng):
    scores = rng.normal(size=(4, 9)) * 50 + rng.choice([-1000, 0, 1000])  # [T, K]
    m, total = np.full(4, -np.inf), np.zeros(4)
    for block in np.split(scores, [2, 3, 7], axis=1):
        m, total = lesson["running_softmax"](m, total, block)
    np.testing.assert_array_equal(m, scores.max(axis=1))
    right = Tensor(scores).logsumexp(dim=-1).data
    np.testing.assert_allclose(m + np.log(total), right, rtol=1e-12)


def test_the_mix_in_three_blocks_is_the_librarys(rng):
    scores, values = rng.normal(size=6) * 20, rng.normal(size=(6, 2))
    names = executed.rerun("10", "m, total, mix = -np.inf", row=scores, v_row=values)
    q, k = Tensor([[1.0]], dtype=np.float64), Tensor(scores[:, None])
    right = blocked_attention(q, k, Tensor(values), block=2).data[0]
    np.testing.assert_allclose(names["mix"] / names["total"], right, rtol=1e-10)
