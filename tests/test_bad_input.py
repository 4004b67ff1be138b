"""Input that nobody meant: a right result, or an error that teaches, from every public function.

Each row of the tables is a call and what its arguments are drawn from: mostly what it asks for, at
times anything else. COURSE_INPUTS=2000 draws that many for each row.
"""

import dataclasses
import dis
import fractions
import itertools
import operator
import os
import re
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from IPython.utils.capture import capture_output

import course_lib
from course_lib import attention, check, functional, gpt, nn, plots, tensor, text, train
from course_lib.gradcheck import check_gradients
from course_lib.tensor import Tensor, no_grad

HERE = Path(course_lib.__file__).parent
# What Python and NumPy say well enough themselves.
PLAIN_ENOUGH = (
    "not supported between|data type|Cannot interpret|is not iterable|iteration over a 0-d|"
    "slice indices must be|Maximum allowed|expected str, bytes or os.PathLike|^.Errno"
)
DOCUMENTED = (TypeError, ValueError, IndexError, KeyError, RuntimeError, FloatingPointError)
DOCUMENTED += (OSError,)  # from load
many = settings(
    max_examples=int(os.environ.get("COURSE_INPUTS", "15")),
    deadline=10_000,  # milliseconds for one input: nothing may hang
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)

# -- what is drawn ---------------------------------------------------------------------------------

DTYPES = [np.float64, np.float32, np.float16, np.int64, np.bool_, np.int8, np.uint64, ">f4"]
DTYPES += [np.complex64, np.object_, np.str_, "M8[s]", np.longdouble]
SPECIAL = [None, np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, 6e4, 3e38, -1e9, 1e300]
ODD_TEXT = ["", " ", "a", "$x_1$", "<script>alert(1)</script>", "a\nb", "مصرف", "🏦👩‍👩", "银行"]
ODD_TEXT += ["\x00", "\u202egnp", "e\u0301", "\ud800", "x" * 1000]
ODD = [None, ..., True, -1, 0, 1.5, np.nan, np.inf, 10**30, 1j, fractions.Fraction(1, 3), object()]
ODD += [[], (), {}, {1.0}, [None], [[1.0, 2.0], [3.0]], [[]], "2", b"2", slice(None)]
ODD += [np.float32(2), np.array(2), np.datetime64("2024-01-01"), np.ma.masked, Tensor(2), np.tri]


def filled(shape, special, dtype):
    """Normal numbers, every third of them replaced by a special one."""
    array = np.array(2 * np.random.default_rng(0).standard_normal(shape))
    if special is not None:
        array.ravel()[::3] = special
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return array.astype(dtype)


def read_only(array):
    array.setflags(write=False)
    return array


LAYOUTS = {
    "plain": lambda array: array,
    "leaf": lambda array: Tensor(array, requires_grad=True),
    "constant": Tensor,
    "list": np.ndarray.tolist,
    "read-only": read_only,
    "column-major": np.asfortranarray,
    "backwards": lambda array: np.flip(np.flip(array).copy() if array.ndim else array),
    "every other": lambda array: np.repeat(array, 2, axis=-1)[..., ::2] if array.ndim else array,
    "repeated": lambda array: (
        np.broadcast_to(array.ravel()[0], array.shape) if array.size else array
    ),
}


@st.composite
def arrays(draw, *shapes, dtypes=tuple(DTYPES)):
    """Arrays, lists and Tensors of one of the shapes, with odd numbers, dtypes and layouts."""
    shape = draw(st.sampled_from(shapes or SHAPES))
    array = filled(shape, draw(st.sampled_from(SPECIAL)), draw(st.sampled_from(dtypes)))
    try:
        return LAYOUTS[draw(st.sampled_from(list(LAYOUTS)))](array)
    except (TypeError, ValueError):  # no Tensor holds this
        return array


SHAPES = [(), (0,), (1,), (3,), (2, 3), (3, 2), (0, 3), (3, 0), (2, 3, 4), (2, 1, 3), (1, 2, 3, 4)]
FLOATS = (np.float32, np.float64, np.float16)
ANY = st.sampled_from(ODD) | arrays()


def mostly(strategy):
    return st.one_of(strategy, strategy, strategy, strategy, ANY)


def x(*shapes):
    """An argument that ought to be an array of floats of one of these shapes."""
    return mostly(arrays(*shapes, dtypes=FLOATS))


def ids(*shapes, below=7):
    """An argument that ought to be token ids."""
    drawn = st.builds(
        lambda shape, least: np.random.default_rng(1).integers(least, below, shape),
        st.sampled_from(shapes),
        st.sampled_from([0, 0, 0, -1, -101]),
    )
    return mostly(drawn | drawn.map(np.ndarray.tolist))


def one_of(*values):
    return mostly(st.sampled_from(values))


def shares(array):
    """Weights between 0 and 1, but for NaN."""
    with np.errstate(all="ignore"):
        return 1 / (1 + np.abs(np.asarray(getattr(array, "data", array), np.float64)))


SIZE = one_of(1, 2, 3, np.int64(4), 6, 0, -1)
DIM = one_of(None, 0, -1, 1, -2, (0, 1), [0], (0, 0), 7, -9, np.int8(0))
YES = st.booleans()
TEXT = mostly(st.sampled_from(ODD_TEXT) | st.text(max_size=20))
RNG = mostly(st.builds(np.random.default_rng, st.just(0)))

LABELS = mostly(st.none() | st.lists(st.sampled_from(ODD_TEXT), min_size=2, max_size=3))
WEIGHTS = mostly(arrays((2, 3), (3,), (2, 2, 3), dtypes=FLOATS).map(shares))
LINES = mostly(st.dictionaries(st.sampled_from(ODD_TEXT), x((3,)), max_size=2))

# -- what must hold --------------------------------------------------------------------------------


def values_in(thing):
    """Yield the numbers in arrays, Tensors, lists and dataclasses, each as an array."""
    if isinstance(thing, Tensor):
        yield thing.data
    elif isinstance(thing, (list, tuple)):
        yield from itertools.chain.from_iterable(map(values_in, thing))
    elif isinstance(thing, dict):
        yield from values_in(list(thing.values()))
    elif dataclasses.is_dataclass(thing):
        yield from values_in(list(vars(thing).values()))
    elif isinstance(thing, (np.ndarray, np.number, float, int)):
        yield np.asarray(thing)


def holds_nan(thing):
    return any(
        bool((array != array).any())  # NaN is the one value that is not itself
        for array in values_in(thing)
        if array.dtype.kind in "fcO"
    )


def frozen(thing):
    """A text that changes if any value in `thing` does."""
    return [(array.shape, array.dtype, array.tobytes()) for array in values_in(thing)]


def assert_teaches(error):
    """The error is of a documented type, has a sentence, and is raised by a line of ours."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    last = error.__traceback__
    while last.tb_next:
        last = last.tb_next
    at = f"{type(error).__name__}: {error}"
    assert isinstance(error, DOCUMENTED), at
    if re.search(PLAIN_ENOUGH, str(error)):
        return
    operation = dis.opname[frame.f_code.co_code[last.tb_lasti]]
    ours = HERE in Path(frame.f_code.co_filename).parents
    assert ours and operation == "RAISE_VARARGS", f"not raised by us: {at}"
    assert len(str(error)) > 20, f"no sentence: {at}"


def attempt(function, *args):
    """Call, and hold the rules; return the result, or None after an error."""
    before, had_nan = frozen(args), holds_nan(args)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = function(*args)
            if isinstance(result, Tensor) and result.requires_grad:
                result.backward(np.ones(result.shape))
    except MemoryError:
        return None  # NumPy's own says how much was asked for
    except Exception as error:
        assert_teaches(error)
        return None
    finally:
        assert frozen(args) == before, "an argument was changed"
    grads = [arg.grad for arg in args if isinstance(arg, Tensor)]
    assert had_nan or not holds_nan([result, grads]), "a NaN that nobody put in"
    assert_same(function(*map(tidy, args)), result)
    return result


def tidy(arg):
    """The same argument, its values in memory of its own and in order."""
    if isinstance(arg, np.random.Generator):
        return np.random.default_rng(0)
    return np.array(arg, order="C") if type(arg) is np.ndarray else arg


def assert_same(one, other):
    """Two results hold the same numbers, but for rounding."""
    for a, b in zip(values_in(one), values_in(other), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        if a.dtype.kind in "fc":
            tolerance = 100 * float(np.finfo(a.dtype).eps)
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
        else:
            assert np.array_equal(a, b)


# -- the tables ------------------------------------------------------------------------------------

MATRIX = (2, 3)
MODEL = gpt.GPT(gpt.GPTConfig(7, 5, n_layer=1, n_head=2, n_embd=4), np.random.default_rng(0))
LINEAR = nn.Linear(3, 2, np.random.default_rng(0))
MLP = nn.MLP(3, np.random.default_rng(0))
HEADS = attention.MultiHeadAttention(4, 2, np.random.default_rng(0))


def method(name):
    def call(tensor, *args):
        return getattr(Tensor(tensor), name)(*args)

    return call


def operation(name):
    return getattr(operator, name)


def as_tensor(thing):
    """A Tensor of anything that can be one."""
    try:
        return Tensor(thing)
    except (TypeError, ValueError):
        return Tensor(1.0)


def two_steps_with_cache(x, mask):
    cache = attention.KVCache(1, 2, 4, 2)
    with no_grad():
        HEADS(x, cache=cache)
        return HEADS(x, mask, cache=cache)


def append(k, v):
    cache = attention.KVCache(1, 2, 4, 2)
    cache.append(k, v)
    return cache.append(k, v)


def gpt_of(*sizes):
    return gpt.GPT(gpt.GPTConfig(*sizes), np.random.default_rng(0))(np.zeros((1, 1), int))


def stepped(gradient, lr):
    layer = nn.Linear(3, 2, np.random.default_rng(0))
    (layer.weight * Tensor(gradient)).sum().backward()
    layer.bias.grad = np.zeros(2, np.float32)
    train.AdamW(layer).step(lr)
    return layer.state_dict()


def clipped(gradient, max_norm):
    weight = Tensor(np.ones((3, 2)), requires_grad=True)
    (weight * Tensor(gradient)).sum().backward()
    return train.clip_grad_norm([weight], max_norm), weight.grad


def first_batch(*args):
    return next(text.batches(*args))


def there_and_back(words):
    for kind in (text.CharTokenizer, text.WordTokenizer):
        tokenizer = kind(words)
        again = tokenizer.decode(tokenizer.encode(words))
        assert again == words if kind is text.CharTokenizer else again.split() == words.split()
    return len(tokenizer)


DTYPE = st.sampled_from([*DTYPES, int, None, "no", 1j])
A_NUMBER = st.sampled_from([0, 1.0, -1.0, 1e-5, np.nan, np.inf, np.float32(0.1), 10**30, True])
CALLS = {
    "Tensor": (Tensor, ANY),
    "Tensor, dtype": (lambda x, dtype: Tensor(x, dtype=dtype), ANY, DTYPE),
    "requires_grad": (lambda x: Tensor(x, requires_grad=True), ANY),
    "data": (lambda x: setattr(Tensor(np.ones((2, 3))), "data", x), x((2, 3), (3,), (2, 3, 1))),
    "backward": (lambda x, g: (Tensor(x) * 2).backward(g), x(), ANY),
    "index": (operator.getitem, arrays(dtypes=FLOATS).filter(Tensor.__instancecheck__), ANY),
    "masked_fill": (method("masked_fill"), x(), ANY, ANY),
    "reshape": (method("reshape"), x(), one_of(6, -1, (3, 2), (-1, -1), (2, -1), (0,), (10**30,))),
    "permute": (method("permute"), x(), one_of((1, 0), (0, 1, 2), (0, 0), (2, 0, 1), 0, ())),
    "transpose": (method("transpose"), x(), DIM, DIM),
    "var": (method("var"), x(), DIM, YES, st.integers(-1, 3)),
    "cat": (tensor.cat, mostly(st.lists(x((2, 3), (0, 3), (3,)), max_size=3)), DIM),
    "stack": (tensor.stack, mostly(st.lists(x((2, 3), (3,)), max_size=3)), DIM),
    "where": (tensor.where, mostly(arrays(dtypes=(np.bool_,))), x(), x()),
    "unbroadcast": (
        tensor.unbroadcast,
        st.builds(np.ones, st.sampled_from(SHAPES)),
        st.sampled_from(SHAPES),
    ),
    "embedding": (functional.embedding, ids((), (2, 3), (0,), below=3), x((3, 2), (3,))),
    "mlp": (functional.mlp, x((3,), (2, 3), (0, 3)), x((3, 2)), x((2,)), x((2, 1)), x((1,))),
    "linear": (functional.linear, x((3,), (2, 3), (0, 3)), x((3, 2)), x((2,))),
    "layer_norm": (functional.layer_norm, x((2, 3), (0, 3)), x((3,)), x((3,)), A_NUMBER),
    "cross_entropy": (
        functional.cross_entropy,
        x((2, 7), (0, 7)),
        ids((2,), (0,)),
        st.integers(-101, 6),
    ),
    "causal_mask": (attention.causal_mask, SIZE, SIZE),
    "attention": (attention.attention, *3 * [x((2, 3), (2, 2, 3), (2, 0))], x((2, 2)) | ANY, YES),
    "fused_attention": (attention.fused_attention, x((2, 3, 12), (0, 3, 6)), SIZE, x((3, 3)) | ANY),
    "blocked_attention": (attention.blocked_attention, *3 * [x((3, 2), (2, 3, 2))], SIZE, YES),
    "KVCache": (attention.KVCache, *4 * [SIZE], DTYPE),
    "KVCache.append": (append, *2 * [x((1, 2, 2, 2), (1, 2, 9, 2), (1, 2, 0, 2))]),
    "MultiHeadAttention": (attention.MultiHeadAttention, SIZE, SIZE, RNG),
    "heads": (HEADS, x((1, 3, 4), (1, 0, 4), (0, 3, 4)), x((3, 3)) | ANY, YES),
    "heads with cache": (two_steps_with_cache, x((1, 2, 4), (1, 0, 4)), x((2, 4)) | ANY),
    "Linear": (nn.Linear, SIZE, SIZE, RNG, YES),
    "Linear.forward": (LINEAR, x((3,), (2, 3), (0, 3), (1, 2, 3))),
    "Embedding": (nn.Embedding, SIZE, SIZE, RNG),
    "LayerNorm": (lambda n, eps, x: nn.LayerNorm(n, eps)(x), SIZE, A_NUMBER, x((2, 3))),
    "MLP": (nn.MLP, SIZE, RNG),
    "MLP.forward": (MLP, x((2, 3), (0, 3))),
    "load_state_dict": (
        nn.Linear(3, 2, np.random.default_rng(0)).load_state_dict,
        mostly(st.fixed_dictionaries({"weight": x((3, 2)), "bias": x((2,))})),
    ),
    "GPTConfig": (gpt_of, *5 * [SIZE]),
    "GPT.forward": (MODEL, ids((1, 3), (2, 5), (1, 9), (1, 0)), ids((1, 3), (2, 5)) | st.none()),
    "GPT.generate": (
        MODEL.generate,
        ids((3,), (2, 3), (9,), (0,)),
        st.sampled_from([0, 1, 3, -1, 1.5, None, "2", np.nan]),
        one_of(0, 1, 1e-9, 0.5, 1e9, -1),
        one_of(None, 1, 7, 8, 0),
        RNG,
        YES,
    ),
    "GPT.load": (MODEL.load, st.sampled_from(["/nowhere/to/be.npz", __file__, HERE, None, [], 1j])),
    "new_cache": (MODEL.new_cache, SIZE),
    "AdamW.step": (stepped, x((3, 2)), A_NUMBER),
    "clip_grad_norm": (clipped, x((3, 2)), A_NUMBER),
    "warmup_cosine": (
        lambda step, steps, warmup: train.warmup_cosine(step % steps, steps, warmup),
        *3 * [st.integers(1, 9)],
    ),
    "tokenizers": (there_and_back, TEXT),
    "encode": (lambda a, b: text.CharTokenizer(a).encode(b), TEXT, TEXT),
    "decode": (text.CharTokenizer("abcdefg").decode, ids((3,), (0,), (2, 3))),
    "train_val_split": (text.train_val_split, ids((20,), (0,), (2, 3)), A_NUMBER | st.just(0.1)),
    "batches": (first_batch, ids((20,), (3,), (2, 3)), SIZE, SIZE, RNG),
    "bank_sentences": (text.bank_sentences, SIZE, RNG),
    "check_gradients": (
        lambda x, eps, tolerance: check_gradients(Tensor.tanh, x, eps=eps, tolerance=tolerance),
        x((2,)),
        A_NUMBER,
        A_NUMBER,
    ),
}
for name in ("add", "sub", "mul", "truediv", "pow", "matmul", "eq", "ne", "lt", "le", "gt", "ge"):
    CALLS[f"{name}, left"] = (operation(name), x().map(as_tensor), x())
    CALLS[f"{name}, right"] = (operation(name), x(), x().map(as_tensor))
for name in ("exp", "log", "sqrt", "tanh", "relu", "gelu", "item", "numpy", "detach", "__len__"):
    CALLS[name] = (method(name), x())
for name in ("__float__", "__bool__", "__repr__", "retain_grad"):
    CALLS[name] = (method(name), x())
for name in ("sum", "mean", "max", "logsumexp", "softmax", "log_softmax"):
    CALLS[name] = (method(name), x(), DIM)


@pytest.mark.parametrize("name", CALLS)
@many
@given(data=st.data())
def test_a_right_result_or_an_error_that_teaches(name, data):
    function, *drawn_from = CALLS[name]
    attempt(function, *[data.draw(one) for one in drawn_from])


FIGURES = {
    "scores_heatmap": (plots.scores_heatmap, x((2, 3), (2, 2, 3)), LABELS, LABELS, LABELS, TEXT),
    "weights_heatmap": (
        plots.weights_heatmap,
        WEIGHTS,
        mostly(st.none() | arrays((2, 3), dtypes=(np.bool_,))),
        *3 * [LABELS],
        TEXT,
    ),
    "weight_bars": (plots.weight_bars, WEIGHTS, LABELS, LABELS, TEXT),
    "line_chart": (plots.line_chart, x((3,)), LINES, LINES | st.none(), TEXT, TEXT, YES, TEXT),
    "histograms": (plots.histograms, LINES, mostly(st.just([1.0])), TEXT, TEXT),
    "point_clouds": (
        plots.point_clouds,
        mostly(st.lists(x((3, 2)), max_size=2)),
        LABELS,
        LABELS,
        TEXT,
    ),
}


@pytest.mark.parametrize("name", FIGURES)
@many
@given(data=st.data())
def test_a_figure_or_an_error_that_teaches(name, data):
    function, *drawn_from = FIGURES[name]
    drawn = attempt(
        lambda *args: plots.png(function(*args)), *[data.draw(one) for one in drawn_from]
    )
    assert drawn is None or drawn.startswith(b"\x89PNG")


@many
@given(says=TEXT)
def test_markup_in_a_sentence_is_shown_not_run(says):
    with capture_output() as shown:
        attempt(plots.show, plots.new_figure(1, 1, plots.LIGHT), says)
    assert "<script" not in repr([output.data.get("text/html") for output in shown.outputs])


@pytest.mark.parametrize("name", sorted(set(check.__all__) - {"Result"}))
@many
@given(answer=ANY)
def test_a_checker_has_a_word_for_everything(name, answer):
    before = frozen(answer)
    result = getattr(check, name)(answer)
    assert isinstance(result, check.Result) and (result.message or answer is ...)
    assert frozen(answer) == before


@many
@given(printed=TEXT)
def test_markup_that_a_learner_prints_is_shown_not_run(printed):
    result = check.scores(lambda q, k: print(printed))
    assert "<script" not in result._repr_html_()


# -- what was found so, case by case ---------------------------------------------------------------

QKV = np.ones((1, 3, 12))
RAGGED = [[1, 2], [3]]
HIDDEN_INF = np.ones((1, 4, 12))
HIDDEN_INF[0, 3, 11] = np.inf  # a value that the first three queries may not see
COLUMNS = [HIDDEN_INF[..., n : n + 4] for n in (0, 4, 8)]
FOUND = [
    (lambda: Tensor([0, 2], dtype=bool), TypeError, "write x != 0"),
    (lambda: Tensor([1.0])[RAGGED], IndexError, "index into"),
    (lambda: Tensor([1.0])[10**30], IndexError, "index into"),
    (lambda: Tensor([[1.0]]).transpose(0, None), TypeError, "one axis"),
    (lambda: tensor.cat([[1.0]], dim=(0,)), TypeError, "one axis"),
    (lambda: tensor.stack([[1.0]], dim=None), TypeError, "one axis"),
    (lambda: tensor.where(RAGGED, 1.0, 0.0), ValueError, "several lengths"),
    (lambda: functional.embedding(RAGGED, np.eye(4)), ValueError, "several lengths"),
    (lambda: functional.cross_entropy(np.eye(2), RAGGED), ValueError, "several lengths"),
    (lambda: attention.attention(*3 * [np.eye(2)], RAGGED), ValueError, "several lengths"),
    (lambda: MODEL(RAGGED), ValueError, "several lengths"),
    (lambda: MODEL.generate(RAGGED, 1, 0), ValueError, "several lengths"),
    (lambda: text.CharTokenizer("ab").decode(RAGGED), ValueError, "several lengths"),
    (lambda: text.batches(RAGGED, 1, 1, None), ValueError, "several lengths"),
    (lambda: text.train_val_split(RAGGED), ValueError, "several lengths"),
    (lambda: check_gradients(Tensor.tanh, RAGGED), ValueError, "several lengths"),
    (lambda: attention.causal_mask(10**30), ValueError, "more than fits"),
    (lambda: attention.fused_attention(np.ones((3, 12)), 2), ValueError, "not 3 × 2 heads"),
    (lambda: attention.fused_attention(QKV, 0), ValueError, "n_head must be"),
    (lambda: attention.fused_attention(HIDDEN_INF, 1, np.tri(4) > 0), ValueError, "0 · inf"),
    (lambda: attention.blocked_attention(*COLUMNS, causal=True), ValueError, "0 · inf"),
    (lambda: attention.KVCache(1, 0, 1, 1), ValueError, "KVCache: n_head"),
    (lambda: MODEL.new_cache(-1), ValueError, "new_cache: batch"),
    (lambda: HEADS(np.ones((2, 4))), ValueError, r"\[B, T, D\]"),
    (lambda: attention.MultiHeadAttention("4", 2, None), ValueError, "n_embd must be"),
    (lambda: nn.MLP(None, None), ValueError, "MLP: n_embd"),
    (lambda: gpt_of(7, 5, -1, 2, 4), ValueError, "GPT: n_layer"),
    (lambda: LINEAR.load_state_dict("model.npz"), TypeError, r"use load\(path\)"),
    (lambda: MODEL.load(True), TypeError, "PathLike"),
    (lambda: MODEL.generate([0], 10**30, 0), ValueError, "more than fits"),
    (lambda: MODEL.generate([0], 1, "1"), ValueError, "temperature"),
    (lambda: stepped(np.full((3, 2), 1e30), 0.1), FloatingPointError, "too large to be squared"),
    (lambda: stepped(np.ones((3, 2)), np.inf), ValueError, "lr must be"),
    (lambda: train.evaluate(MODEL, iter([]), 0), ValueError, "evaluate: n must be"),
    (lambda: train.train(MODEL, iter([]), -1, None, None), ValueError, "train: steps must be"),
    (lambda: clipped(np.ones((3, 2)), -1.0), ValueError, "max_norm must be"),
    (lambda: text.CharTokenizer(["a", "b"]), TypeError, "expected a str"),
    (lambda: text.WordTokenizer(None), TypeError, "expected a str"),
    (lambda: text.CharTokenizer("ab").encode(["a"]), TypeError, "expected a str"),
    (lambda: text.batches([1, 2], 1, None, None), ValueError, "block_size must be"),
    (lambda: text.batches([1, 2], 1, 1, 0), TypeError, "rng must be"),
    (lambda: text.train_val_split("text"), ValueError, r"must be \[N\]"),
    (lambda: text.bank_sentences(-1, None), ValueError, "n must be"),
    (lambda: text.bank_sentences(1, 0), TypeError, "rng must be"),
    (lambda: check_gradients(Tensor.tanh, np.ones(1), eps=0), ValueError, "eps must be"),
    (lambda: plots.line_chart([1.0], [[1.0]]), TypeError, "lines: expected a dict"),
    (lambda: plots.line_chart([1.0], {"a": [1.0]}, [[1.0]]), TypeError, "theory: expected a dict"),
    (lambda: plots.histograms([1.0], [1.0]), TypeError, "samples: expected a dict"),
    (lambda: plots.histograms({"a": [1.0]}, np.eye(2)), ValueError, "sigmas: expected shape"),
    (lambda: plots.point_clouds([], []), ValueError, "points: none given"),
]


@pytest.mark.parametrize(("call", "kind", "words"), FOUND)
def test_found_before(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_arrays_and_lists_do_where_tensors_do():
    for call, *args in [
        (LINEAR, np.ones((2, 3))),
        (HEADS, np.ones((1, 2, 4))),
        (two_steps_with_cache, np.ones((1, 2, 4)), None),
        (append, *2 * [np.ones((1, 2, 1, 2))]),
        (lambda x: attention.fused_attention(x, 2), QKV),
        (attention.blocked_attention, *3 * [np.eye(3)]),
    ]:
        lists = [arg if arg is None else arg.tolist() for arg in args]
        tensors = [arg if arg is None else Tensor(arg.astype(np.float32)) for arg in args]
        arrays = [arg if arg is None else arg.astype(np.float32) for arg in args]
        for others in (lists, arrays):
            assert_same(call(*others), call(*tensors))


def test_a_state_that_does_not_fit_leaves_all_parameters_as_they_were():
    layer = nn.Linear(3, 2, np.random.default_rng(0))
    before = frozen(layer.state_dict())
    with pytest.raises(ValueError, match="too large for float32"):
        layer.load_state_dict({"weight": np.ones((3, 2)), "bias": np.full(2, 1e300)})
    assert frozen(layer.state_dict()) == before


def test_a_gradient_that_is_not_finite_is_not_shortened_to_nan():
    norm, gradient = clipped(np.where(np.eye(3, 2) == 1, np.inf, 1.0), 1.0)
    assert norm == np.inf and not np.isnan(gradient).any()
