"""Lesson 02: a dictionary lookup made soft."""

from typing import Any

import numpy as np

from course_lib._arrays import Array
from course_lib.check.formulas import normal, softmax
from course_lib.check.judge import Case, Exercise, Mistake, Result, judge, judge_value


def soft_lookup_by_hand(answer: object) -> Result:
    """Check one soft lookup worked out by hand, to two decimals or better.

    Parameters
    ----------
    answer : float
        The output for the query (2, 1), the keys (1, 0), (0, 1) and (0, 0), and the values 10, 20
        and 30, not scaled.

    Returns
    -------
    Result
    """
    expected = _lookup(_QUERY, _KEYS, _VALUES)
    otherwise = (
        "Go through the steps again: three scores, three exponentials, and three weights, which "
        "sum to 1 and have three decimals each."
    )
    return judge_value("soft_lookup_by_hand", answer, expected, otherwise, _BY_HAND, tolerance=1e-3)


def soft_lookup(function: object) -> Result:
    """Check `soft_lookup(query, keys, values)`: a mix of the values, by how well each key fits.

    Parameters
    ----------
    function : callable
        ``soft_lookup(query, keys, values)`` with query [d_k], keys [n, d_k] and values [n, d_v]
        returns [d_v]: Σ_j w_j v_j, where the weights w_j are proportional to exp(query · key_j),
        not scaled, and sum to 1.

    Returns
    -------
    Result
    """
    return judge(SOFT_LOOKUP, function)


_QUERY = np.array([2.0, 1.0])
_KEYS = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
_VALUES = np.array([10.0, 20.0, 30.0])


def _weights(query: Array, keys: Array) -> Array:
    return softmax(keys @ query)  # [n]


def _lookup(query: Array, keys: Array, values: Array) -> Any:
    return _weights(query, keys) @ values


def _hard_lookup(query: Array, keys: Array, values: Array) -> Any:
    return values[np.argmax(keys @ query)]


def _average(query: Array, keys: Array, values: Array) -> Any:
    return values.mean(axis=0)


def _unnormalized(query: Array, keys: Array, values: Array) -> Any:
    return np.exp(keys @ query) @ values


def _shares(query: Array, keys: Array, values: Array) -> Any:
    scores = keys @ query
    return scores / scores.sum() @ values


def _bare_scores(query: Array, keys: Array, values: Array) -> Any:
    return keys @ query @ values


def _cases() -> tuple[Case, ...]:
    rng = np.random.default_rng(2)
    cases = []
    for n, dtype in ((5, np.float64), (6, np.float32)):
        query = normal(rng, (3,), dtype)
        keys, values = normal(rng, (n, 3), dtype), normal(rng, (n, 4), dtype)
        inputs = {"query": query, "keys": keys, "values": values}
        cases.append(Case(inputs, (_lookup(query, keys, values),)))
    return tuple(cases)


_COMMON = (
    ("M26", "That is one value only, the best: what do the other keys add?", _hard_lookup),
    ("average", "Each value counts the same here: where does the query come in?", _average),
    (
        "not normalized",
        "The weights do not sum to 1: is the output between the values?",
        _unnormalized,
    ),
    (
        "M14",
        "The weights are shares of the scores themselves: what would a negative score become?",
        _shares,
    ),
    ("scores as weights", "The scores are used as weights: do they sum to 1?", _bare_scores),
)

SOFT_LOOKUP = Exercise(
    "soft_lookup",
    {"output": "[d_v]"},
    _cases(),
    (
        *(Mistake(name, says, (answer,)) for name, says, answer in _COMMON),
        Mistake(
            "M14",
            "The weights are shares of the scores themselves: what keeps the order, and makes each "
            "positive?",
            (
                lambda query, keys, values: (
                    (np.abs(keys @ query) / np.abs(keys @ query).sum()) @ values
                ),
            ),
        ),
        Mistake(
            "mix of keys",
            "The keys are mixed: which vectors hold what is looked up?",
            (lambda query, keys, values: _weights(query, keys) @ keys,),
        ),
        Mistake(
            "scaled",
            "The scores are divided by something: this lookup uses the dot products as they are.",
            (
                lambda query, keys, values: _lookup(query / np.sqrt(len(query)), keys, values),
                lambda query, keys, values: _lookup(query / len(query), keys, values),
            ),
        ),
    ),
)

_BY_HAND = tuple(
    Mistake(name, says, (lambda answer=answer: answer(_QUERY, _KEYS, _VALUES),))
    for name, says, answer in _COMMON
)
