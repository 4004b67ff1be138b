"""Texts, tokens and batches."""

import sys

import numpy as np
import pytest

from course_lib.text import (
    CharTokenizer,
    WordTokenizer,
    bank_sentences,
    batches,
    python_reference,
    train_val_split,
)


@pytest.mark.parametrize("kind", [CharTokenizer, WordTokenizer])
def test_a_text_comes_back_from_its_ids(kind):
    text = "the river was old . the bank flooded ."
    tokenizer = kind(text)
    ids = tokenizer.encode(text)
    assert ids.dtype == np.int64 and set(ids) == set(range(len(tokenizer)))
    assert tokenizer.decode(ids) == text


def test_symbols_never_seen_are_named():
    with pytest.raises(ValueError, match=r"\['x', 'é'\]"):
        CharTokenizer("abc").encode("axé")
    with pytest.raises(ValueError, match="moon"):
        WordTokenizer("the river").encode("the moon")
    with pytest.raises(ValueError, match="empty"):
        CharTokenizer("")
    with pytest.raises(IndexError, match=r"0 … 2"):
        CharTokenizer("abc").decode([3])


def test_targets_are_the_tokens_after_the_inputs():
    stream = batches(np.arange(50), 6, 5, np.random.default_rng(0))
    starts = set()
    for _ in range(200):
        inputs, targets = next(stream)
        assert inputs.shape == targets.shape == (6, 5)
        assert np.array_equal(targets, inputs + 1)
        starts |= set(inputs[:, 0].tolist())
    assert starts == set(range(45))  # every place where a window and its last target fit


def test_a_text_shorter_than_a_window_is_refused():
    with pytest.raises(ValueError, match="N > block_size = 5"):
        batches(np.arange(5), 1, 5, np.random.default_rng(0))


def test_the_split_keeps_order_and_loses_nothing():
    train, val = train_val_split(np.arange(100), 0.2)
    assert train.tolist() == list(range(80)) and val.tolist() == list(range(80, 100))
    with pytest.raises(ValueError, match="val_share"):
        train_val_split(np.arange(10), 1.5)


def test_one_earlier_word_decides_what_the_bank_does():
    water = {"river", "boat", "fish", "water", "bridge"}
    text = bank_sentences(500, np.random.default_rng(0))
    banks = [s.split() for s in text.split(" . ") if " bank " in s]
    assert 200 < len(banks) < 300
    for words in banks:
        at = words.index("bank")
        assert words[at + 1] == ("flooded" if words[1] in water else "paid")
        assert not set(words[2:at]) & (water | {"flooded", "paid"})
        assert 5 <= at - 1 <= 9
    assert text == bank_sentences(500, np.random.default_rng(0))


def test_real_text_is_there_with_and_without_pydoc_data(monkeypatch):
    text = python_reference()
    assert len(text) > 100_000 and text.isascii()
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    other = python_reference()
    assert len(other) > 10_000 and other.isascii() and other != text
