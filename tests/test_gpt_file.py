"""The file that holds a GPT: written whole or not at all, read with suspicion."""

import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.gpt import GPT, GPTConfig

CONFIG = GPTConfig(vocab_size=11, block_size=8, n_layer=2, n_head=2, n_embd=8)
PROMPT = np.arange(5)


@pytest.fixture
def model():
    return GPT(CONFIG, np.random.default_rng(0)).double()


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
        elif how == "strings":
            arrays[name] = np.full((11, 8), "0.5")
        elif how == "records":
            arrays[name] = np.zeros((11, 8), "f4,f4")
        elif how == "config":
            arrays["config.n_head"] = np.array(4)
        elif how == "two sizes":
            arrays["config.n_head"] = np.array([2, 2])
        np.savez(path, **arrays)
        if how == "no array":
            with zipfile.ZipFile(path, "a") as archive:
                archive.writestr("notes.txt", b"not written by save()")
        elif how == "huge":
            with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("stranger.npy", bytes(10_000_000))


@pytest.mark.parametrize(
    "how",
    [
        "truncated",
        "text",
        "pickle",
        "missing",
        "foreign",
        "shape",
        "nan",
        "strings",
        "records",
        "config",
        "two sizes",
        "no array",
        "huge",
    ],
)
def test_a_damaged_file_is_refused_and_the_model_untouched(model, tmp_path, how):
    path = tmp_path / "model.npz"
    GPT(CONFIG, np.random.default_rng(2)).save(path)
    damaged(path, how)
    before = {name: values.copy() for name, values in model.state_dict().items()}
    with pytest.raises(ValueError, match=r"^load: .*model.npz"):
        model.load(path)
    assert all(np.array_equal(before[name], v) for name, v in model.state_dict().items())


def test_a_small_file_that_unpacks_to_much_is_not_unpacked(model, tmp_path):
    path = tmp_path / "model.npz"
    model.save(path)
    damaged(path, "huge")
    with pytest.raises(ValueError, match=r"bytes unpacked, at most .* expected"):
        model.load(path)


@given(st.data())
def test_a_file_with_changed_bytes_is_refused_or_read_whole(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("changed")
    model = GPT(CONFIG, np.random.default_rng(0))
    model.save(folder / "model.npz")
    whole = (folder / "model.npz").read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    cut = data.draw(st.integers(place, len(whole)))
    changed = whole[:place] + data.draw(st.binary(max_size=8)) + whole[cut:]
    (folder / "model.npz").write_bytes(changed)
    other = GPT(CONFIG, np.random.default_rng(1))
    before = other.state_dict()
    try:
        other.load(folder / "model.npz")
        expected = model.state_dict()
    except ValueError as error:
        assert str(error).startswith("load: ")
        expected = before
    assert all(np.array_equal(expected[name], v) for name, v in other.state_dict().items())


SAVES_FOR_EVER = """
import sys
import numpy as np
from course_lib.gpt import GPT, GPTConfig

model = GPT(GPTConfig.tiny(vocab_size=50), np.random.default_rng(1))
while True:
    model.save(sys.argv[1])
    print("saved", flush=True)
"""


def test_a_kernel_killed_while_it_saves_leaves_a_whole_file(tmp_path):
    path = tmp_path / "model.npz"
    rng = np.random.default_rng(3)
    config = GPTConfig.tiny(vocab_size=50)
    GPT(config, np.random.default_rng(0)).save(path)
    for _ in range(5):
        kernel = subprocess.Popen(
            [sys.executable, "-c", SAVES_FOR_EVER, str(path)], stdout=subprocess.PIPE
        )
        kernel.stdout.readline()
        time.sleep(rng.uniform(0, 0.02))
        kernel.kill()
        kernel.communicate()
        GPT(config, np.random.default_rng(2)).load(path)


def test_a_file_of_another_configuration_says_what_differs(model, tmp_path):
    path = tmp_path / "model.npz"
    GPT(GPTConfig(11, 9, 1, 2, 8), np.random.default_rng(2)).save(path)
    with pytest.raises(ValueError, match="block_size is 9 there, 8 here; n_layer is 1 there, 2"):
        model.load(path)
    np.savez(path, **model.state_dict())
    with pytest.raises(ValueError, match="vocab_size is None there, 11 here"):
        model.load(path)


def test_a_file_that_is_no_archive_is_named(model, tmp_path):
    path = tmp_path / "model.npz"
    path.write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(ValueError, match=r"model.npz is no model .*\(BadZipFile: "):
        model.load(path)


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
