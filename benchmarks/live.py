"""Measure a live figure: from a key press on its slider to the new picture on the screen.

In one run, in turns, in a real JupyterLab in a real Chromium:

- ``live``: lesson 04's figure, as the lesson shows it;
- ``interact``: the same figure under ipywidgets' plain `interact`, a new inline picture per step;
- ``empty``: an empty widget whose kernel side only sends a number back: the round trip alone.

Run it with ``python benchmarks/live.py``. It exits with 1 where a bar is missed.
"""

import statistics
import sys
import tempfile
from pathlib import Path

import harness
import nbformat

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "browser")]

from real_lab import OpenNotebook, chromium, jupyterlab  # noqa: E402

from conftest import find_chromium  # noqa: E402

ROUNDS, PRESSES = 6, 12
TIMES_INTERACT = 4.0  # the live figure is at least so many times as fast as interact
TIMES_EMPTY = 2.5  # and takes at most so many times the empty round trip

CELLS = {
    "live": """
from course_lib.live import softmax_saturation
softmax_saturation.explore()
""",
    "interact": """
%matplotlib inline
import ipywidgets
from course_lib.live import softmax_saturation
values = softmax_saturation.explore().values

def draw(d_k):
    state = softmax_saturation.compute(**(values | {"d_k": d_k}))
    return softmax_saturation.draw(state).figure

ipywidgets.interact(draw, d_k=ipywidgets.IntSlider(values["d_k"], 1, 512));
""",
    "empty": """
import anywidget, traitlets

class Empty(anywidget.AnyWidget):
    _esm = '''
    function render({ model, el }) {
      el.innerHTML = "<p class='empty' tabindex='0'>0</p>";
      const p = el.firstChild;
      p.addEventListener("keydown", (event) => {
        event.stopPropagation();
        model.set("asked", model.get("asked") + 1);
        model.save_changes();
      });
      model.on("change:answered", () => { p.textContent = model.get("answered"); });
    }
    export default { render };
    '''
    asked = traitlets.Int(0).tag(sync=True)
    answered = traitlets.Int(0).tag(sync=True)

    @traitlets.observe("asked")
    def answer(self, change):
        self.answered = change.new

Empty()
""",
}

# What takes the key, and what is watched for the answer.
HANDLES = {"live": ".noUi-handle", "interact": ".noUi-handle", "empty": ".empty"}

# Each kind of answer calls `seen`; the time is taken when the frame that holds it has been painted.
STOPWATCH = """
window.stopwatch = { start: 0, done: null };
window.addEventListener("keydown", (event) => { stopwatch.start = event.timeStamp; }, true);
function seen() {
  requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      stopwatch.done?.(performance.now() - stopwatch.start);
      stopwatch.done = null;
    };
    port2.postMessage(null);
  });
}
const put = CanvasRenderingContext2D.prototype.putImageData;
CanvasRenderingContext2D.prototype.putImageData = function (...given) {
  put.apply(this, given);
  seen();
};
new MutationObserver((changes) => {
  for (const { target, addedNodes } of changes) {
    if (target.className === "empty") seen();
    for (const node of addedNodes) {
      const picture = node.querySelector?.(".jp-RenderedImage img, img");
      if (picture) picture.decode().then(seen);
    }
  }
}).observe(document.body, { childList: true, subtree: true });
"""


def notebook():
    """Return the notebook with one cell for each kind."""
    cells = [nbformat.v4.new_code_cell(source.strip()) for source in CELLS.values()]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def seconds_per_press(page, kind):
    """Press ArrowRight again and again; return the times until the answer was painted."""
    output = page.locator(".jp-Notebook-cell").nth(list(CELLS).index(kind))
    output.scroll_into_view_if_needed()
    output.locator(HANDLES[kind]).first.focus()
    times = []
    for _ in range(PRESSES):
        page.wait_for_timeout(150)
        page.evaluate("window.answer = new Promise((done) => { stopwatch.done = done; }), null")
        page.keyboard.press("ArrowRight")
        times.append(page.evaluate("window.answer") / 1000)
    return times[2:]  # the first ones of a round warm up


def measure(executable):
    """Return a list of seconds for each kind."""
    with tempfile.TemporaryDirectory() as folder:
        served, private = Path(folder, "served"), Path(folder, "private")
        served.mkdir()
        nbformat.write(notebook(), served / "live.ipynb")
        with jupyterlab(served, private) as (address, token), chromium(executable) as browser:
            opened = OpenNotebook(browser, address, token, "live.ipynb", height=2400)
            opened.run_all()
            opened.page.locator(".empty").wait_for()
            opened.page.evaluate(STOPWATCH)
            times = {kind: [] for kind in CELLS}
            for _ in range(ROUNDS):
                for kind in CELLS:
                    times[kind] += seconds_per_press(opened.page, kind)
            opened.close()
    return times


def main():
    packages = ["jupyterlab", "ipywidgets", "anywidget", "matplotlib", "ipykernel"]
    report = harness.Report("From a key press on a slider to the painted picture", packages)
    executable = find_chromium()
    if executable is None:
        print("left out: no Chromium found; install it, or name it in CHROMIUM")
        report.end()
    seconds = measure(executable)
    report.costs(seconds)
    medians = {kind: statistics.median(values) for kind, values in seconds.items()}
    faster = medians["interact"] / medians["live"]
    report.figure("times as fast as interact", faster, at_least=TIMES_INTERACT)
    slower = medians["live"] / medians["empty"]
    report.figure("times the empty round trip", slower, at_most=TIMES_EMPTY)
    report.end()


if __name__ == "__main__":
    main()
