// The view of a live figure: it puts the kernel's pixels on the screen, says its sentence, and
// reports theme and resolution, pointer and keys.

export default { render };

function render({ model, el }) {
  const closing = new AbortController();
  const { canvas, says } = elements(model, el);
  showPixels(model, canvas, closing.signal);
  showSentence(model, says, closing.signal);
  reportScreen(model, canvas, closing.signal);
  reportInput(model, canvas);
  whenAttached(el, closing.signal, () => guardControls(el.closest(".live-explorer") ?? el, closing.signal));
  return () => closing.abort();
}

// The canvas keeps its size in the page, whatever resolution and theme its pixels have.
function elements(model, el) {
  el.classList.add("live-figure");
  const canvas = document.createElement("canvas");
  const [width, height] = model.get("base").css_size;
  canvas.className = "live-canvas";
  canvas.style.width = `${width}px`;
  canvas.style.aspectRatio = `${width} / ${height}`;
  canvas.setAttribute("role", model.get("takes_keys") ? "application" : "img");
  canvas.setAttribute("aria-label", model.get("name"));
  canvas.tabIndex = 0;

  const says = document.createElement("p");
  says.className = "live-says";
  says.setAttribute("aria-live", "polite");
  el.append(canvas, says);
  return { canvas, says };
}

function showSentence(model, says, signal) {
  const update = () => {
    says.textContent = model.get("says");
    says.toggleAttribute("data-failed", model.get("failed"));
    keepHeight(says);
  };
  const size = new ResizeObserver(() => keepHeight(says));
  size.observe(says.parentElement);
  signal.addEventListener("abort", () => size.disconnect());
  model.on("change:says change:failed", update);
  update();
}

// As high as its longest text so far, at this width: what stands below does not move up and down.
function keepHeight(says) {
  const width = `${says.clientWidth}`;
  if (says.dataset.width !== width) says.style.minHeight = "";
  says.dataset.width = width;
  says.style.minHeight = `${says.offsetHeight}px`;
}

// ------------------------------------------------------------------------------------ pixels

// Only the newest frame is put on the screen: of those that arrive while one is unpacked, the last.
function showPixels(model, canvas, signal) {
  const pen = canvas.getContext("2d");
  let base, still, image, frame;
  let busy = false;

  async function draw() {
    if (busy) return;
    busy = true;
    while (!signal.aborted && (frame !== model.get("frame") || base !== model.get("base"))) {
      frame = model.get("frame");
      const wanted = model.get("base");
      const [words, newStill] = await Promise.all([
        unpack(frame.pixels),
        wanted === base ? still : unpack(wanted.pixels),
      ]);
      if (wanted !== base) {
        [canvas.width, canvas.height] = wanted.size;
        image = new ImageData(...wanted.size);
        base = wanted;
        still = newStill;
      }
      putTogether(still, words, new Uint32Array(image.data.buffer));
      pen.putImageData(image, 0, 0);
      model.set("shown", frame.moves);
      model.save_changes();
    }
    busy = false;
  }

  model.on("change:frame change:base", draw);
  draw();
}

// Copy the still part, and over it each run of pixels that differ (see Screen.frame in figure.py).
function putTogether(still, words, image) {
  image.set(still);
  const count = words[0];
  let at = 1 + count;
  for (let i = 1; i <= count; i += 2) {
    const length = words[i + 1] - words[i];
    image.set(words.subarray(at, at + length), words[i]);
    at += length;
  }
}

async function unpack(pixels) {
  const inflated = new Blob([pixels]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint32Array(await new Response(inflated).arrayBuffer());
}

// ------------------------------------------------------------------------------------ screen

// While JupyterLab changes its theme, the page is without style for a moment: wait until it rests.
function reportScreen(model, canvas, signal) {
  let timer;
  const report = () => {
    const width = Math.round(canvas.clientWidth * window.devicePixelRatio);
    const lastWidth = model.get("screen")[1]; // while the canvas is hidden it has no width
    model.set("screen", [isDark(canvas) ? "dark" : "light", width || lastWidth]);
    model.save_changes();
  };
  const reportSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(report, 100);
  };
  const theme = new MutationObserver(reportSoon);
  theme.observe(document.body, { attributeFilter: ["data-jp-theme-light", "class"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", reportSoon, { signal });
  const size = new ResizeObserver(reportSoon); // calls at once, when the canvas is on the page
  size.observe(canvas);
  window.addEventListener("resize", reportSoon, { signal }); // also when the page is zoomed
  signal.addEventListener("abort", () => {
    clearTimeout(timer);
    theme.disconnect();
    size.disconnect();
  });
}

// JupyterLab says which kind of theme it has. Elsewhere the nearest painted background tells.
function isDark(el) {
  const light = document.body.dataset.jpThemeLight;
  if (light) return light === "false";
  for (let node = el; node; node = node.parentElement) {
    const [red, green, blue, alpha = 1] = getComputedStyle(node).backgroundColor.match(/[\d.]+/g).map(Number);
    if (alpha > 0.5) return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 128;
  }
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

function whenAttached(el, signal, then) {
  const observer = new ResizeObserver(() => {
    if (!el.isConnected) return;
    observer.disconnect();
    then();
  });
  observer.observe(el);
  signal.addEventListener("abort", () => observer.disconnect());
}

// ------------------------------------------------------------------------------------ input

// One message is under way at a time. Meanwhile presses and keys queue up, and of the pointer's
// moves only the last is kept.
function reportInput(model, canvas) {
  let queue = [];
  let underWay = false;

  function send() {
    if (underWay || !queue.length) return;
    model.send({ events: queue });
    queue = [];
    underWay = true;
  }
  function add(event) {
    if (event.kind === "move" && queue.at(-1)?.kind === "move") queue.pop();
    queue.push(event);
    send();
  }
  model.on("msg:custom", (message) => {
    if (message !== "taken") return;
    underWay = false;
    send();
  });

  if (model.get("takes_pointer")) reportPointer(canvas, add);
  if (model.get("takes_keys")) {
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.key === "Tab") return;
      event.preventDefault(); // arrows and space would scroll the page
      add({ kind: "key", key: event.key });
    });
  }
}

function reportPointer(canvas, add) {
  const point = (kind) => (event) => {
    if (kind === "down") canvas.setPointerCapture(event.pointerId);
    if (!canvas.hasPointerCapture(event.pointerId)) return;
    const box = canvas.getBoundingClientRect();
    add({ kind, x: (event.clientX - box.left) / box.width, y: (event.clientY - box.top) / box.height });
  };
  canvas.style.touchAction = "none"; // a finger drags in the figure, not the page
  canvas.addEventListener("pointerdown", point("down"));
  canvas.addEventListener("pointermove", point("move"));
  canvas.addEventListener("pointerup", point("up"));
}

// ------------------------------------------------------------------------------------ controls

// Keys stay in the explorer: in JupyterLab's command mode "d d" deletes the cell, whatever has the
// focus. With Ctrl or Cmd a key still reaches JupyterLab: saving works everywhere.
function guardControls(root, signal) {
  root.tabIndex = -1; // a click beside a control keeps the focus in here too
  root.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey) event.stopPropagation();
  }, { signal });
  const watcher = new MutationObserver(() => nameControls(root));
  watcher.observe(root, { childList: true, subtree: true });
  signal.addEventListener("abort", () => watcher.disconnect());
  nameControls(root);
}

// ipywidgets gives a name to inputs only, and to a slider of options the number of the option as its
// text.
function nameControls(root) {
  for (const label of root.querySelectorAll(".widget-label")) {
    const control = label.parentElement;
    const name = label.textContent;
    const handle = control.querySelector(".noUi-handle");
    const readout = control.querySelector(".widget-readout");
    const button = control.querySelector(".widget-toggle-button");
    handle?.setAttribute("aria-label", name);
    if (readout) handle?.setAttribute("aria-valuetext", readout.textContent);
    if (readout?.isContentEditable) {
      readout.setAttribute("role", "textbox");
      readout.setAttribute("aria-label", name);
    }
    button?.parentElement.setAttribute("role", "group");
    button?.parentElement.setAttribute("aria-label", name);
  }
}
