"""Measure how the tiny GPT writes 200 tokens: with a cache, without, and PyTorch with a cache.

All have the same weights and take the likeliest token each time, so they must write the same text.
The last norm's weights are drawn at random: an untrained GPT would repeat one word otherwise.

With a cache, one more token after T others costs

    2 · (12 · n_layer · D² + vocab_size · D)  +  4 · n_layer · T · D

multiplications and additions: its way through the linear layers, and its attention to T keys and
T values. Only the second part, T's share, grows. So from T = 64 to T = 960 the time per token may
grow by at most the factor by which this sum grows. (Without a cache, it grows faster than T.)

Run it with ``python benchmarks/generation.py``. It exits with 1 where a bar is missed.
"""

import copy
import functools

import harness
import numpy as np

from course_lib.gpt import GPT, GPTConfig
from course_lib.tensor import no_grad

CONFIG = GPTConfig.tiny(vocab_size=96, block_size=1024)
PROMPT, TOKENS, ROUNDS = 8, 200, 15
EARLY, LATE, STEPS = 64, 960, 64  # how many tokens stand before, and how many are then added
CACHED, UNCACHED, TORCH = "course_lib, cache", "course_lib, no cache", "PyTorch, cache"


def weights():
    """Return {name: float32 array}: as the course's GPT starts, but for its last norm."""
    rng = np.random.default_rng(5)
    state = GPT(CONFIG, rng).state_dict()
    return state | {"ln_f.weight": rng.standard_normal(CONFIG.n_embd, np.float32)}


def course_model():
    model = GPT(CONFIG, np.random.default_rng(0))
    model.load_state_dict(weights())
    return model


def text(t):
    return np.random.default_rng(2).integers(0, CONFIG.vocab_size, (1, t))


def course(cache):
    model, prompt = course_model(), text(PROMPT)
    return lambda: model.generate(prompt, TOKENS, temperature=0, cache=cache)[0].tolist()


def pytorch():
    import torch
    from sides.pytorch import GPT, generate, load

    torch.set_num_threads(1)
    model = GPT(CONFIG, sdpa=True)
    load(model, weights())
    prompt = torch.from_numpy(text(PROMPT))
    return lambda: generate(model, prompt, TOKENS)[0].tolist()


@no_grad()
def more_tokens(before):
    """Prepare a cache with `before` tokens; the work is to add STEPS to a copy of it."""
    model, filled = course_model(), course_model().new_cache()
    ids = text(before)
    model(ids, cache=filled)

    @no_grad()
    def work():
        cache, token = copy.deepcopy(filled), ids[:, -1:]
        for _ in range(STEPS):
            logits, _ = model(token, cache=cache)
            token = logits.data.argmax(axis=-1)  # [1, 1]

    return work


def operations(t):
    """Return how many multiplications and additions one more token after t others costs."""
    c = CONFIG
    layers = 12 * c.n_layer * c.n_embd**2 + c.vocab_size * c.n_embd
    return 2 * layers + 4 * c.n_layer * t * c.n_embd


WRITERS = {
    CACHED: functools.partial(course, cache=True),
    UNCACHED: functools.partial(course, cache=False),
    TORCH: pytorch,
}
MORE = {
    f"course_lib, {STEPS} tokens after {t}": functools.partial(more_tokens, t)
    for t in (EARLY, LATE)
}


def measure():
    report = harness.Report(f"{TOKENS} tokens, tiny GPT, one thread", ["numpy", "torch"])
    seconds, texts = harness.take_turns(__file__, WRITERS, ROUNDS)
    report.costs(seconds)
    for other in (UNCACHED, TORCH):
        report.ratio(f"of {other}", seconds, CACHED, other)
    differ = sum(written != texts[CACHED] for written in texts.values())
    report.figure("sides that wrote another text", differ, at_most=0)
    report.figure("different tokens in it", len(set(texts[CACHED][PROMPT:])), at_least=20)
    print()

    seconds, _ = harness.take_turns(__file__, MORE, ROUNDS)
    report.costs(seconds)
    early, late = MORE
    share = operations(LATE) / operations(EARLY)
    report.ratio("times the time per token", seconds, late, early, at_most=share)
    report.end()


if __name__ == "__main__":
    harness.main(WRITERS | MORE, measure)
