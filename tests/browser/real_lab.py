"""A real JupyterLab in a real Chromium, for the browser tests and for benchmarks/live.py."""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import sync_playwright

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
QUIET = {"fetchNews": "false", "checkForUpdates": False}
PATIENCE = 120_000  # milliseconds: a busy machine is slow, but nothing here waits for long


@contextmanager
def jupyterlab(folder, private):
    """Serve `folder` with a JupyterLab of its own; yield its address, with the token.

    Settings, workspaces and everything else that JupyterLab writes go to the folder `private`.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    settings = private / "settings"
    notification = settings / "@jupyterlab" / "apputils-extension"
    notification.mkdir(parents=True)
    notification = notification / "notification.jupyterlab-settings"
    notification.write_text(json.dumps(QUIET), encoding="utf-8")
    places = {
        "JUPYTER_CONFIG_DIR": private / "config",
        "JUPYTER_RUNTIME_DIR": private / "runtime",
        "JUPYTERLAB_SETTINGS_DIR": settings,
        "JUPYTERLAB_WORKSPACES_DIR": private / "workspaces",
        "IPYTHONDIR": private / "ipython",
    }
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += ["--expose-app-in-browser", f"--ServerApp.root_dir={folder}"]
    command += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    command += [f"--IdentityProvider.token={token}"]
    environment = os.environ | {name: str(place) for name, place in places.items()}
    with (private / "log.txt").open("w", encoding="utf-8") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        address = f"http://127.0.0.1:{port}"
        wait_until_it_answers(f"{address}/api?token={token}", server, private / "log.txt")
        yield address, token
    finally:
        server.terminate()
        server.wait(30)


def wait_until_it_answers(url, server, log):
    end = time.monotonic() + 60
    while time.monotonic() < end and server.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text(encoding='utf-8')}")


@contextmanager
def chromium(executable):
    """Start Chromium; yield playwright's browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class OpenNotebook:
    """One notebook in a page of its own.

    Attributes
    ----------
    page : playwright's Page
    complaints : list of str
        What the page wrote to its console as an error, and uncaught exceptions.
    requests : list of str
        The address of every request.
    """

    def __init__(self, browser, address, token, name, width=1280, height=800, sharpness=1):
        context = browser.new_context(
            viewport={"width": width, "height": height}, device_scale_factor=sharpness
        )
        self.page = context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.complaints, self.requests = [], []
        self.page.on("console", self._take_console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("websocket", lambda socket: self.requests.append(socket.url))
        workspace = secrets.token_hex(4)
        url = f"{address}/lab/workspaces/{workspace}/tree/{name}?token={token}"
        self.page.goto(url)
        self.page.wait_for_function(
            "window.jupyterapp?.shell.currentWidget?.content?.widgets?.length"
            " && jupyterapp.shell.currentWidget.sessionContext?.session?.kernel?.status === 'idle'",
        )
        self._wait_for_no_splash()

    def _wait_for_no_splash(self):
        # JupyterLab throws an error when its splash is called for while the last one still fades.
        self.page.locator("#jupyterlab-splash").wait_for(state="detached")

    def _take_console(self, message):
        if message.type == "error":
            self.complaints.append(f"{message.text} ({message.location.get('url', '')})")

    def command(self, name, **arguments):
        """Run one of JupyterLab's commands, and wait until it is done."""
        return self.page.evaluate(
            "([name, given]) => jupyterapp.commands.execute(name, given).then(() => null)",
            [name, arguments],
        )

    def run_all(self):
        """Run every cell."""
        self.command("notebook:run-all-cells")

    def cell_count(self):
        """Return how many cells the notebook has."""
        return self.page.evaluate("jupyterapp.shell.currentWidget.content.widgets.length")

    def foreign_requests(self):
        """Return the addresses of requests that left the machine."""
        own = ("http://127.0.0.1:", "ws://127.0.0.1:", "blob:http://127.0.0.1:", "data:")
        return [url for url in self.requests if not url.startswith(own)]

    def explorers(self):
        """Yield every explorer in view, once its picture has the screen's resolution."""
        for root in self.page.locator(".live-explorer").all():
            explorer = Explorer(root)
            explorer.says.scroll_into_view_if_needed()
            explorer.canvas.scroll_into_view_if_needed()
            self.page.wait_for_function(
                "canvas => canvas.width === Math.round(canvas.clientWidth * devicePixelRatio)",
                arg=explorer.canvas.element_handle(),
            )
            yield explorer

    def settle(self):
        """Wait until the kernel has answered every message, and its answers are on the screen."""
        # A view sends a message when it has shown a frame, so a quarter of a second without any
        # message under way means that the last frame is shown.
        self.page.evaluate(
            """async patience => {
                const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
                const isDone = 4; // of JupyterLab's KernelFutureHandler; those of cells are kept
                const isWaiting = future => !(future._status & isDone);
                const waits = () => [...kernel._futures.values()].some(isWaiting);
                const end = Date.now() + patience;
                for (let quiet = 0; quiet < 10; quiet++) {
                    await new Promise(done => setTimeout(done, 25));
                    if (waits() || kernel.status !== "idle") quiet = -1;
                    if (Date.now() > end) throw new Error("the kernel does not come to rest");
                }
            }""",
            PATIENCE,
        )

    def set_theme(self, name):
        """Switch JupyterLab to "JupyterLab Light" or "JupyterLab Dark"."""
        self.command("apputils:change-theme", theme=name)
        self.page.wait_for_function("name => document.body.dataset.jpThemeName === name", arg=name)
        self._wait_for_no_splash()

    def close(self):
        """Shut the kernel down and close the page."""
        self.command("kernelmenu:shutdown")
        self.page.context.close()


class Explorer:
    """One explorer in the page.

    Attributes
    ----------
    root, canvas, says : playwright's Locator
    """

    def __init__(self, root):
        self.root = root
        self.canvas = root.locator("canvas.live-canvas")
        self.says = root.locator(".live-says")

    def sentence(self):
        """Return the sentence below the picture."""
        return self.says.inner_text()

    def pixels(self):
        """Return the picture's pixels, as one string."""
        return self.canvas.evaluate("canvas => canvas.toDataURL()")

    def handle(self, name):
        """Return the handle of the slider with this description."""
        return self.root.get_by_role("slider", name=name, exact=True)

    def wait_for_sentence(self, text):
        """Wait until the sentence contains `text`."""
        self.says.filter(has_text=text).wait_for()

    def wait_for_paper(self, dark):
        """Wait until the corner of the picture, which is bare paper, is dark or light."""
        self.root.page.wait_for_function(
            "([canvas, dark]) =>"
            " canvas.getContext('2d').getImageData(0, 0, 1, 1).data[0] < 128 === dark",
            arg=[self.canvas.element_handle(), dark],
        )

    def wait_for_other_pixels(self, before):
        """Wait until the picture is another than `before`; return it."""
        end = time.monotonic() + PATIENCE / 1000
        while (now := self.pixels()) == before:
            assert time.monotonic() < end, "the picture did not change"
            self.root.page.wait_for_timeout(20)
        return now
