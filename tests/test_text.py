"""Texts, tokens and batches."""

import builtins
import re
import sys
from types import SimpleNamespace

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
    with pytest.raises(ValueError, match=r"\['moon'\] .* WordTokenizer"):
        WordTokenizer("the river").encode("the moon")


@pytest.mark.parametrize("ids", [[3], [-1]])
def test_ids_out_of_range_are_refused(ids):
    with pytest.raises(IndexError, match=r"decode: there is no id -?\d among 3 \(0 … 2\)"):
        CharTokenizer("abc").decode(ids)


@pytest.mark.parametrize("ids", [[[0]], 0])
def test_ids_of_another_rank_are_refused(ids):
    with pytest.raises(ValueError, match=r"decode: ids \[.*\] must be \[T\]"):
        CharTokenizer("abc").decode(ids)


@pytest.mark.parametrize("ids", [[1.5], [True], ["a"]])
def test_ids_that_are_no_integers_are_refused(ids):
    with pytest.raises(TypeError, match="decode: ids must be whole numbers, got"):
        CharTokenizer("abc").decode(ids)


@pytest.mark.parametrize("kind", [CharTokenizer, WordTokenizer])
def test_an_empty_text(kind):
    with pytest.raises(ValueError, match=f"{kind.__name__}: the text is empty"):
        kind("")
    ids = kind("a b").encode("")
    assert ids.shape == (0,) and ids.dtype == np.int64
    assert kind("a b").decode(ids) == kind("a b").decode([]) == ""


def test_targets_are_the_tokens_after_the_inputs():
    stream = batches(np.arange(50), 6, 5, np.random.default_rng(0))
    starts = set()
    for _ in range(200):
        inputs, targets = next(stream)
        assert inputs.shape == targets.shape == (6, 5)
        assert np.array_equal(targets, inputs + 1)
        starts |= set(inputs[:, 0].tolist())
    assert starts == set(range(45))  # every place where a window and its last target fit


@pytest.mark.parametrize("ids", [np.arange(5), np.zeros((7, 1), int)])
def test_a_text_shorter_than_a_window_or_of_another_rank_is_refused(ids):
    with pytest.raises(ValueError, match=r"batches: ids \[.* N > block_size = 5"):
        batches(ids, 1, 5, np.random.default_rng(0))


def test_the_split_keeps_order_and_loses_nothing():
    train, val = train_val_split(np.arange(100), 0.2)
    assert train.tolist() == list(range(80)) and val.tolist() == list(range(80, 100))
    train, val = train_val_split(np.arange(100))
    assert len(train) == 90 and val.tolist() == list(range(90, 100))


@pytest.mark.parametrize("share", [0, 1, 1.5, -0.1])
def test_a_share_that_leaves_one_part_empty_is_refused(share):
    with pytest.raises(ValueError, match=f"val_share must lie between 0 and 1, got {share}"):
        train_val_split(np.arange(10), share)


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


def test_every_sentence_of_the_small_language_follows_its_grammar():
    when = "(again|today|in may|at night|at last)"
    noun = "(river|boat|fish|water|bridge|money|loan|coin|debt|account)"
    start = f"the {noun} was (old|new|small|gone|near|late)"
    bank = "and (we|they|he|she) (saw|said|knew|heard)( that)? the bank (flooded|paid) "
    grammar = re.compile(f"{start} ({bank})?{when} [.]")
    text = bank_sentences(300, np.random.default_rng(1))
    sentences = [f"{part} ." for part in text.removesuffix(" .").split(" . ")]
    assert len(sentences) == 300
    assert all(grammar.fullmatch(sentence) for sentence in sentences)
    assert {"that the bank" in s for s in sentences if "bank" in s} == {True, False}


def test_the_parts_of_the_real_text_stand_in_order_one_under_the_other(monkeypatch):
    topics = {"b": "to\there é~", "a": "one !"}
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", SimpleNamespace(topics=topics))
    assert python_reference() == "one !\ntohere ~"


def test_a_builtin_without_a_docstring_adds_an_empty_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    before = python_reference()
    monkeypatch.setattr(builtins, "undocumented", lambda: None, raising=False)
    assert len(python_reference()) == len(before) + 1


def test_real_text_is_there_with_and_without_pydoc_data(monkeypatch):
    text = python_reference()
    assert len(text) > 100_000 and text.isascii()
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    other = python_reference()
    assert len(other) > 10_000 and other.isascii() and other != text
