"""A live figure: a matplotlib Figure that answers its controls, on a canvas in the notebook.

The figure is drawn once. After that a change of value redraws only the artists that were made with
``animated=True``, over a kept copy of all the rest, and only the pixels that differ from that copy
travel to the notebook, where figure.js puts them on the screen.
"""

import base64
import html
import io
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets
import numpy as np
import traitlets
from IPython.display import display
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imsave

from course_lib._arrays import Array
from course_lib.plots import DARK, LIGHT, PNG_METADATA

HERE = Path(__file__).parent
THEMES = {"light": LIGHT, "dark": DARK}


@dataclass(frozen=True)
class Picture:
    """A figure, and the function that moves its animated artists to another state.

    Attributes
    ----------
    figure : matplotlib.figure.Figure
        Drawn on a ``FigureCanvasAgg``. What moves was made with ``animated=True``, and so was what
        lies on top of it. The rest is drawn once, and never again.
    update : callable
        ``update(state)`` moves the animated artists, and touches nothing else.
    """

    figure: Figure
    update: Callable[[Any], None]


def picture(figure: Figure, state: Any, updates: Sequence[Callable[[Any], None]]) -> Picture:
    """Return a picture of `state` whose parts are moved by one function each."""

    def update(state: Any) -> None:
        for move in updates:
            move(state)

    update(state)
    return Picture(figure, update)


@dataclass(frozen=True)
class Pointer:
    """What the pointer did, and where it went down.

    Attributes
    ----------
    kind : str
        "down", "move" (while it is down) or "up".
    axes : str
        The label of the Axes it went down on, as given to ``add_subplot(label=...)``.
    """

    kind: str
    axes: str


class Screen:
    """A picture at the resolution of one screen: its still part, and the pixels that differ.

    Parameters
    ----------
    picture : Picture
        A fresh one; its figure is set to the resolution of the screen.
    width : int, optional
        How many pixels of the screen the figure is wide; without it, as many as it was made with.
    """

    def __init__(self, picture: Picture, width: int | None = None) -> None:
        self.picture = picture
        figure = picture.figure
        css_size = [float(length) for length in figure.bbox.size]
        if width is not None:
            figure.set_dpi((width + 0.5) / figure.get_figwidth())  # Agg cuts the half pixel off
        assert isinstance(figure.canvas, FigureCanvasAgg)  # as new_figure makes it
        self.canvas = figure.canvas
        self.canvas.draw()
        self.background = self.canvas.copy_from_bbox(figure.bbox)
        self.still = self._pixels().copy()
        height, width = self.still.shape
        self.base = {
            "size": [width, height],
            "css_size": css_size,
            "pixels": zlib.compress(self.still.tobytes(), 1),
        }
        moving = figure.findobj(lambda artist: artist.get_animated())
        self.moving = sorted(moving, key=lambda artist: artist.get_zorder())

    def _pixels(self) -> Array:
        return np.asarray(self.canvas.buffer_rgba()).view(np.uint32)[..., 0]  # [height, width]

    def frame(self) -> bytes:
        """Draw what moves; return the pixels that differ from the still part.

        They are one list of 32-bit words, deflated: how many positions follow, the positions (start
        and end of each run of pixels that differ, counted along the rows), and the pixels.
        """
        self.canvas.restore_region(self.background)
        renderer = self.canvas.get_renderer()
        for artist in self.moving:
            artist.draw(renderer)
        now = self._pixels()
        differs = (now != self.still).ravel()
        positions = np.flatnonzero(np.diff(differs, prepend=False, append=False))
        words = np.concatenate([[len(positions)], positions, now.ravel()[differs]])
        return zlib.compress(words.astype(np.uint32).tobytes(), 1)


class LiveFigure(anywidget.AnyWidget):
    """The canvas in the notebook, with the line of text below it."""

    _esm = HERE / "figure.js"
    _css = HERE / "figure.css"

    # What the kernel tells the view.
    name = traitlets.Unicode().tag(sync=True)
    says = traitlets.Unicode().tag(sync=True)
    failed = traitlets.Bool(False).tag(sync=True)
    takes_pointer = traitlets.Bool(False).tag(sync=True)
    takes_keys = traitlets.Bool(False).tag(sync=True)
    base = traitlets.Dict().tag(sync=True)
    frame = traitlets.Dict().tag(sync=True)  # its "moves" counts the changes of value so far

    # What the view tells the kernel.
    screen = traitlets.Tuple(  # its theme, and how many of its pixels the figure is wide
        traitlets.Enum(list(THEMES)),
        traitlets.Int(min=1, max=8000, allow_none=True),
        default_value=("light", None),
    ).tag(sync=True)
    shown = traitlets.Int(0).tag(sync=True)  # the "moves" of the last frame on the screen

    def __repr__(self) -> str:
        return f"LiveFigure({self.name!r})"


def _ignore(*_: object) -> None:
    """Take no input, where an explorer asks for none."""


def _align(controls: list[Any]) -> None:
    """Put the controls in one column, and left of it their names, as wide as the longest."""
    boxes = ipywidgets.Checkbox  # the name of one stands on its right
    names = [control.description for control in controls if not isinstance(control, boxes)]
    width = max(map(len, names), default=0) + 1
    for control in controls:
        control.style.description_width = f"{width}ch"
        if isinstance(control, ipywidgets.ToggleButtons):
            control.style.button_width = "auto"  # figure.css says how narrow


class Explorer(ipywidgets.VBox):
    """Controls, and a live figure that answers them.

    Where no widget can run (a page without a kernel) the still picture and the sentence stand in
    its place.

    Parameters
    ----------
    name : str
        What the picture is, for those who do not see it.
    compute, draw, says : callable
        ``compute(**values)`` returns a state, ``draw(state, theme)`` a `Picture` of it, and
        ``says(state)`` one sentence about it.
    controls : dict
        Names of the values, and the ipywidgets that hold them, each with a description.
    on_pointer : callable, optional
        ``on_pointer(x, y, pointer)`` with data coordinates and a `Pointer`; it sets controls.
    on_key : callable, optional
        ``on_key(key)`` with a key's name ("ArrowLeft", "a"); it sets controls.

    Attributes
    ----------
    controls : dict
        As given; setting a control's value moves the picture.
    state
        What ``compute`` returned for the picture shown.
    error : Exception or None
        What stopped the figure, until a later value moves it again.
    """

    def __init__(
        self,
        name: str,
        compute: Callable[..., Any],
        draw: Callable[..., Picture],
        says: Callable[[Any], str],
        controls: dict[str, Any],
        on_pointer: Callable[[float, float, Pointer], None] | None = None,
        on_key: Callable[[str], None] | None = None,
    ) -> None:
        self.controls = controls
        self.error: Exception | None = None
        self._compute, self._draw, self._says = compute, draw, says
        self._on_pointer, self._on_key = on_pointer or _ignore, on_key or _ignore
        self._lock = threading.RLock()  # JupyterLab answers a slider in a thread beside the cells
        self._in_batch = False
        self._pressed_on: str | None = None
        self._moves = 0
        self.figure = LiveFigure(
            name=name, takes_pointer=on_pointer is not None, takes_keys=on_key is not None
        )
        self._build()
        self.figure.observe(self._build, "screen")
        self.figure.on_msg(self._take_input)
        _align(list(controls.values()))
        for control in controls.values():
            control.observe(self._move, "value")
        super().__init__([*controls.values(), self.figure])
        self.add_class("live-explorer")

    @property
    def values(self) -> dict[str, Any]:
        """The controls' values, by name."""
        return {name: control.value for name, control in self.controls.items()}

    def has_moved(self) -> bool:
        """Return whether a view in the notebook has shown the answer to a change of value."""
        return self.figure.shown > 0

    def _build(self, _change: object = None) -> None:
        """Draw everything, for the theme and the resolution of the view."""
        with self._lock, self._stopping():
            theme, width = self.figure.screen
            state = self._compute(**self.values)
            self._show(state, Screen(self._draw(state, theme=THEMES[theme]), width))

    def _move(self, _change: object = None) -> None:
        """Draw what moves, for the values of the controls."""
        if self._in_batch:
            return
        with self._lock, self._stopping():
            state = self._compute(**self.values)
            self._screen.picture.update(state)
            self._moves += 1
            self._show(state, self._screen)

    def _show(self, state: Any, screen: Screen) -> None:
        """Send picture and sentence in one message, once both of them are there."""
        says = self._says(state)
        frame = {"moves": self._moves, "pixels": screen.frame()}
        with self.figure.hold_sync():
            self.figure.base, self.figure.frame = screen.base, frame
            self.figure.says, self.figure.failed = says, False
        self.state, self._screen, self.error = state, screen, None

    @contextmanager
    def _stopping(self) -> Iterator[None]:
        """Say in the figure's own line what went wrong; the last good picture stays."""
        try:
            yield
        except Exception as error:
            self.error = error
            self.figure.failed = True
            self.figure.says = f"This figure stopped: {type(error).__name__}: {error}"
            raise

    def _take_input(self, _figure: object, message: dict[str, Any], _buffers: object) -> None:
        """Hand over what pointer and keys did since the last time, and draw once for all of it."""
        with self._lock, self._stopping():
            before = self.values
            self._in_batch = True
            try:
                for event in message["events"]:
                    if event["kind"] == "key":
                        self._on_key(event["key"])
                    else:
                        self._point(event)
            finally:
                self._in_batch = False
                self.figure.send("taken")
            if self.values != before:
                self._move()

    def _point(self, event: dict[str, Any]) -> None:
        """Turn fractions of the canvas into the data coordinates of the Axes pressed on."""
        figure = self._screen.picture.figure
        x = event["x"] * figure.bbox.width
        y = (1 - event["y"]) * figure.bbox.height
        if event["kind"] == "down":
            under = [axes for axes in figure.axes if axes.bbox.contains(x, y)]
            self._pressed_on = str(under[0].get_label()) if under else None
        for axes in figure.axes:
            label = str(axes.get_label())
            if label == self._pressed_on:
                x_data, y_data = axes.transData.inverted().transform((x, y))
                pointer = Pointer(event["kind"], label)
                self._on_pointer(float(x_data), float(y_data), pointer)

    def still(self) -> bytes:
        """Return the picture shown as the bytes of a PNG, in the light theme."""
        width, _ = self._screen.base["css_size"]
        screen = Screen(self._draw(self.state, theme=LIGHT), round(2 * width))
        screen.frame()
        png = io.BytesIO()
        imsave(png, screen.canvas.buffer_rgba(), format="png", metadata=PNG_METADATA)
        return png.getvalue()

    def _repr_mimebundle_(self, **_kwargs: object) -> tuple[dict[str, Any], dict[str, Any]]:
        width, height = self._screen.base["css_size"]
        bundle = {
            "application/vnd.jupyter.widget-view+json": {
                "version_major": 2,
                "version_minor": 0,
                "model_id": self.model_id,
            },
            "image/png": base64.b64encode(self.still()).decode("ascii"),
            "text/plain": self.figure.says,
        }
        return bundle, {"image/png": {"width": round(width), "height": round(height)}}

    def _ipython_display_(self) -> None:
        # The sentence follows as an output of its own, for pages without a kernel; figure.css hides
        # it where the figure is live, and says it itself.
        bundle, metadata = self._repr_mimebundle_()
        display(bundle, metadata=metadata, raw=True)
        says = bundle["text/plain"]
        caption = f'<p class="live-caption">{html.escape(says)}</p>'
        display({"text/html": caption, "text/plain": says}, raw=True)

    def __repr__(self) -> str:
        values = "".join(f", {name}={value!r}" for name, value in self.values.items())
        return f"Explorer({self.figure.name!r}{values})"

    def close(self) -> None:
        """Take the controls and the figure off every page, and out of the kernel's memory."""
        for child in self.children:
            child.close()
        super().close()
