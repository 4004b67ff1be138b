"""The live figure by itself: what it sends, what it says, and what stops it."""

import base64
import gc
import io
import threading
import time
import tracemalloc
import zlib
from dataclasses import dataclass

import ipywidgets
import numpy as np
import pytest
import traitlets
from matplotlib.image import imread

from course_lib.live import figure as live
from course_lib.live.figure import Explorer, Picture, Screen
from course_lib.plots import DARK, LIGHT, new_figure


@dataclass(frozen=True)
class State:
    x: float


def compute(x, fails=False):
    if fails:
        raise ValueError("fails is <on>")
    return State(x)


def draw(state, theme=LIGHT):
    """Draw a still bar, and one that moves, with a moving text."""
    figure = new_figure(4, 1.5, theme)
    axes = figure.add_subplot(label="bars")
    axes.set(xlim=(0, 10), ylim=(-1, 2))
    axes.barh([1], [5], color=theme.muted)
    (bar,) = axes.barh([0], [state.x], color=theme.accents[0], animated=True)
    text = axes.text(0, -0.8, f"x = {state.x}", color=theme.ink, animated=True)

    def update(state):
        bar.set_width(state.x)
        text.set_text(f"x = {state.x}")

    return Picture(figure, update)


def says(state):
    return f"x is {state.x}, and x < 20."


def explore(**changed):
    controls = {
        "x": ipywidgets.IntSlider(3, 0, 10, description="x"),
        "fails": ipywidgets.Checkbox(False, description="Fails"),
    }
    parts = {"compute": compute, "draw": draw, "says": says, "controls": controls}
    return Explorer("Two bars", **(parts | changed))


def on_screen(figure):
    """Put the messages together as figure.js does; return the picture, [height, width, 4]."""
    width, height = figure.base["size"]
    image = np.frombuffer(zlib.decompress(figure.base["pixels"]), np.uint32).copy()
    words = np.frombuffer(zlib.decompress(figure.frame["pixels"]), np.uint32)
    runs, pixels = words[1 : 1 + words[0]].reshape(-1, 2), words[1 + words[0] :]
    for start, end in runs:
        image[start:end], pixels = pixels[: end - start], pixels[end - start :]
    assert not len(pixels)
    return image.view(np.uint8).reshape(height, width, 4)


def drawn_anew(x, theme=LIGHT, width=None):
    """Return the picture of a state as matplotlib saves it, with all that moves."""
    figure = draw(State(x), theme).figure
    png = io.BytesIO()
    dpi = (width + 0.5) / figure.get_figwidth() if width else figure.dpi
    figure.savefig(png, format="png", dpi=dpi)
    png.seek(0)
    return (imread(png) * 255).round().astype(np.uint8)


@pytest.fixture
def sent(monkeypatch):
    """The messages that live figures send."""
    messages = []

    def keep(self, message, buffers=None):
        if isinstance(self, live.LiveFigure):
            messages.append(message)

    monkeypatch.setattr(ipywidgets.Widget, "_send", keep)
    return messages


# ------------------------------------------------------------------------------------ pixels


@pytest.mark.parametrize("x", [0, 1, 7, 10])
def test_after_a_move_the_screen_shows_the_whole_picture(x):
    explorer = explore()
    explorer.controls["x"].value = 10 - x
    explorer.controls["x"].value = x
    # Only where a moving artist meets the frame of the Axes may the order of drawing differ.
    off = np.abs(on_screen(explorer.figure).astype(int) - drawn_anew(x)).max(axis=-1) > 3
    assert off.mean() < 0.01


def test_a_move_sends_the_still_part_only_once():
    explorer = explore()
    base = explorer.figure.base
    explorer.controls["x"].value = 9
    assert explorer.figure.base is base


def test_a_move_is_one_message_with_picture_and_sentence(sent):
    explorer = explore()
    sent.clear()
    explorer.controls["x"].value = 4
    (message,) = sent
    assert set(message["state"]) == {"frame", "says"}
    assert message["state"]["says"] == "x is 4, and x < 20."


def test_a_picture_in_which_nothing_moves_is_sent_whole():
    figure = draw(State(1)).figure
    for artist in figure.findobj(lambda artist: artist.get_animated()):
        artist.remove()
    screen = Screen(Picture(figure, None))
    assert np.frombuffer(zlib.decompress(screen.frame()), np.uint32).tolist() == [0]


@pytest.mark.parametrize("width", [150, 333, 400, 801])
def test_the_picture_is_as_wide_as_the_view_says(width):
    explorer = explore()
    explorer.figure.screen = ("light", width)
    shown = on_screen(explorer.figure)
    assert shown.shape[1] == width
    assert explorer.figure.base["css_size"] == [400, 150]
    off = np.abs(shown.astype(int) - drawn_anew(3, width=width)).max(axis=-1) > 3
    assert off.mean() < 0.01


def test_the_theme_of_the_view_is_followed_and_moves_on():
    explorer = explore()
    explorer.figure.screen = ("dark", None)
    explorer.controls["x"].value = 8
    off = np.abs(on_screen(explorer.figure).astype(int) - drawn_anew(8, DARK)).max(axis=-1) > 3
    assert off.mean() < 0.01


@pytest.mark.parametrize("screen", [("sepia", 400), ("dark", 0), ("dark", 10**6), ("dark",)])
def test_a_view_cannot_ask_for_nonsense(screen):
    with pytest.raises(traitlets.TraitError):
        explore().figure.screen = screen


# ------------------------------------------------------------------------------------ pages


def test_a_page_without_a_kernel_gets_the_still_picture_and_the_sentence(monkeypatch):
    shown = []
    monkeypatch.setattr(live, "display", lambda data, metadata=None, raw=False: shown.append(data))
    explorer = explore()
    explorer.controls["x"].value = 6
    explorer.figure.screen = ("dark", None)
    explorer._ipython_display_()
    picture, caption = shown
    view = picture["application/vnd.jupyter.widget-view+json"]
    assert view["model_id"] == explorer.model_id
    assert picture["text/plain"] == caption["text/plain"] == "x is 6, and x < 20."
    assert caption["text/html"] == '<p class="live-caption">x is 6, and x &lt; 20.</p>'
    still = imread(io.BytesIO(base64.b64decode(picture["image/png"])))
    assert still.shape == (300, 800, 4)  # twice 150 × 400: sharp on a sharp screen
    expected = drawn_anew(6, LIGHT, width=800)
    off = np.abs((still * 255).round() - expected).max(axis=-1) > 3
    assert off.mean() < 0.01


def test_the_same_picture_gives_the_same_bytes():
    assert explore().still() == explore().still()


def test_repr_is_the_same_everywhere():
    assert repr(explore()) == "Explorer('Two bars', x=3, fails=False)"
    assert repr(explore().figure) == "LiveFigure('Two bars')"


# ------------------------------------------------------------------------------------ errors


def broken_draw(state, theme=LIGHT):
    picture = draw(state, theme)

    def update(state):
        raise ValueError("fails is <on>")

    return Picture(picture.figure, update)


def broken_says(state):
    if state.x == 5:
        raise ValueError("fails is <on>")
    return says(state)


@pytest.mark.parametrize(
    "changed, name, value",
    [
        ({}, "fails", True),
        ({"draw": broken_draw}, "x", 5),
        ({"says": broken_says}, "x", 5),
    ],
    ids=["compute", "update", "says"],
)
def test_an_error_is_raised_recorded_and_said(changed, name, value):
    explorer = explore(**changed)
    frame, state = explorer.figure.frame, explorer.state
    with pytest.raises(ValueError, match="fails is <on>"):
        explorer.controls[name].value = value
    assert str(explorer.error) == "fails is <on>"
    assert explorer.figure.failed
    assert explorer.figure.says == "This figure stopped: ValueError: fails is <on>"
    assert explorer.figure.frame is frame and explorer.state is state  # the last good picture


def test_the_next_good_value_moves_it_again():
    explorer = explore()
    with pytest.raises(ValueError):
        explorer.controls["fails"].value = True
    explorer.controls["fails"].value = False
    assert explorer.error is None and not explorer.figure.failed
    assert explorer.figure.says == "x is 3, and x < 20."


def test_another_theme_does_not_hide_an_error():
    explorer = explore()
    with pytest.raises(ValueError):
        explorer.controls["fails"].value = True
    with pytest.raises(ValueError):
        explorer.figure.screen = ("dark", None)
    assert explorer.figure.failed and "fails is <on>" in explorer.figure.says


def test_a_bad_value_is_refused_as_ipywidgets_does():
    explorer = explore()
    frame = explorer.figure.frame
    with pytest.raises(traitlets.TraitError):
        explorer.controls["x"].value = "seven"
    assert explorer.figure.frame is frame and explorer.error is None


# ------------------------------------------------------------------------------------ input


def send(explorer, *events):
    """Hand over events as the view sends them."""
    explorer._take_input(explorer.figure, {"events": list(events)}, [])


def pointing_explorer(seen):
    explorer = explore()

    def on_pointer(x, y, pointer):
        seen.append((round(x, 1), round(y, 1), pointer.kind, pointer.axes))
        explorer.controls["x"].value = round(np.clip(x, 0, 10))

    explorer._on_pointer = on_pointer
    return explorer


def event(explorer, kind, x, y):
    """Return the event at data coordinates (x, y) of the only Axes."""
    figure = explorer._screen.picture.figure
    x, y = figure.axes[0].transData.transform((x, y)) / figure.bbox.size
    return {"kind": kind, "x": x, "y": 1 - y}


@pytest.mark.parametrize("width", [None, 800])
def test_the_pointer_arrives_in_data_coordinates(width):
    seen = []
    explorer = pointing_explorer(seen)
    explorer.figure.screen = ("light", width)
    send(explorer, event(explorer, "down", 2, 1))
    send(explorer, event(explorer, "move", 7, 0), event(explorer, "up", 14, 0))  # to the outside
    assert seen == [(2, 1, "down", "bars"), (7, 0, "move", "bars"), (14, 0, "up", "bars")]
    assert explorer.state == State(10)


def test_a_press_outside_of_any_axes_moves_nothing():
    seen = []
    explorer = pointing_explorer(seen)
    send(explorer, {"kind": "down", "x": 0.001, "y": 0.001}, event(explorer, "move", 2, 1))
    assert seen == []


def test_all_that_came_at_once_is_drawn_once(sent):
    explorer = pointing_explorer([])
    sent.clear()
    send(explorer, event(explorer, "down", 2, 1), event(explorer, "move", 7, 0))
    assert [message["method"] for message in sent] == ["custom", "update"]
    assert explorer.state == State(7)


def test_keys_arrive_in_order():
    keys = []
    explorer = explore(on_key=keys.append)
    assert explorer.figure.takes_keys and not explorer.figure.takes_pointer
    send(explorer, {"kind": "key", "key": "ArrowLeft"}, {"kind": "key", "key": "a"})
    assert keys == ["ArrowLeft", "a"]


def test_an_error_in_a_callback_is_said_and_the_view_may_send_again(sent):
    def on_key(key):
        raise KeyError(key)

    explorer = explore(on_key=on_key)
    sent.clear()
    with pytest.raises(KeyError):
        explorer._take_input(None, {"events": [{"kind": "key", "key": "x"}]}, [])
    assert "KeyError: 'x'" in explorer.figure.says
    assert {"method": "custom", "content": "taken"} in sent


# ------------------------------------------------------------------------------------ life


def test_only_a_view_that_showed_an_answer_counts_as_moved():
    explorer = explore()
    explorer.figure.shown = explorer.figure.frame["moves"]  # the view shows the first picture
    explorer.controls["x"].value = 4
    assert not explorer.has_moved()
    explorer.figure.shown = explorer.figure.frame["moves"]
    assert explorer.has_moved()


def test_another_theme_is_no_move():
    explorer = explore()
    explorer.figure.screen = ("dark", None)
    explorer.figure.shown = explorer.figure.frame["moves"]
    assert not explorer.has_moved()


def test_two_threads_do_not_draw_at_once():
    inside, most = [], []

    def slow(x, fails):
        inside.append(x)
        most.append(len(inside))
        time.sleep(0.002)
        inside.pop()
        return State(x)

    explorer = explore(compute=slow)

    def move(values):
        for x in values:
            explorer.controls["x"].value = x

    other = threading.Thread(target=move, args=([1, 2] * 20,))
    other.start()
    move([8, 9] * 20)
    other.join()
    assert max(most) == 1


def test_a_thousand_moves_leave_nothing_behind():
    explorer = explore()

    def move(times):
        for n in range(times):
            explorer.controls["x"].value = n % 10
        gc.collect()
        return len(gc.get_objects())

    move(100)
    tracemalloc.start()
    objects, (memory, _) = move(10), tracemalloc.get_traced_memory()
    more_objects, (more_memory, _) = move(1000), tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert more_objects - objects < 500
    assert more_memory - memory < 1_000_000


def test_close_takes_every_widget_away():
    from ipywidgets.widgets.widget import _instances

    before = set(_instances)
    explorer = explore()
    assert set(_instances) > before
    explorer.close()
    left = {type(_instances[key]).__name__ for key in set(_instances) - before}
    assert left <= {"LayoutModel", "Layout", "SliderStyle", "CheckboxStyle"}
