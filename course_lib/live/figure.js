// The view of a live figure: it puts the kernel's pixels on the screen, says its sentence, and
// reports theme and resolution, pointer and keys.

export default { render };

function render({ model, el }) {
  const closing = new AbortController();
  const { canvas, says } = elements(model, el);
  showPixels(model, canvas, closing.signal);
  showSentence(model, says);
  reportScreen(model, el, closing.signal);
  reportInput(model, canvas);
  whenAttached(el, closing.signal, () => guardControls(el.closest(".live-explorer") ?? el, closing.signal));
  return () => closing.abort();
}

// A box that keeps its size in the page, whatever resolution and theme the pixels have: below, the
// still part, above, what moves. Without a size of its own it would make the page jump.
function elements(model, el) {
  el.classList.add("live-figure");
  const canvas = document.createElement("div");
  const [width, height] = model.get("base").css_size;
  canvas.className = "live-canvas";
  canvas.style.width = `${width}px`;
  canvas.style.aspectRatio = `${width} / ${height}`;
  canvas.setAttribute("role", model.get("takes_keys") ? "application" : "img");
  canvas.setAttribute("aria-label", model.get("name"));
  canvas.tabIndex = 0;
  canvas.append(document.createElement("canvas"), document.createElement("canvas"));

  const says = document.createElement("p");
  says.className = "live-says";
  says.setAttribute("aria-live", "polite");
  el.append(canvas, says);
  return { canvas, says };
}

function showSentence(model, says) {
  const update = () => {
    says.textContent = model.get("says");
    says.toggleAttribute("data-failed", model.get("failed"));
  };
  model.on("change:says change:failed", update);
  update();
}

// ------------------------------------------------------------------------------------ pixels

// Only the newest frame is put on the screen: what arrives while one is unpacked replaces its next.
function showPixels(model, canvas, signal) {
  const [below, above] = canvas.children;
  let base = null;
  let frame = null;
  let busy = false;

  async function draw() {
    if (busy) return;
    busy = true;
    while (!signal.aborted && frame !== model.get("frame")) {
      const wanted = { base: model.get("base"), frame: model.get("frame") };
      const [width, height] = wanted.base.size;
      const still = wanted.base === base ? null : await unpack(wanted.base.pixels, width, height);
      const moving = await unpack(wanted.frame.pixels, wanted.frame.box[2], wanted.frame.box[3]);
      if (still) {
        for (const layer of [below, above]) Object.assign(layer, { width, height });
        below.getContext("2d").putImageData(still, 0, 0);
      }
      const pen = above.getContext("2d");
      if (frame) pen.clearRect(...frame.box);
      if (moving) pen.putImageData(moving, wanted.frame.box[0], wanted.frame.box[1]);
      ({ base, frame } = wanted);
      model.set("shown", frame.moves);
      model.save_changes();
    }
    busy = false;
  }

  model.on("change:frame", draw);
  draw();
}

async function unpack(pixels, width, height) {
  if (!width) return null;
  const inflated = new Blob([pixels]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = await new Response(inflated).arrayBuffer();
  return new ImageData(new Uint8ClampedArray(bytes), width, height);
}

// ------------------------------------------------------------------------------------ screen

function reportScreen(model, el, signal) {
  const report = () => {
    model.set("theme", isDark(el) ? "dark" : "light");
    model.set("pixel_ratio", Math.min(Math.max(window.devicePixelRatio, 1), 3));
    model.save_changes();
  };
  const watcher = new MutationObserver(report);
  watcher.observe(document.body, { attributeFilter: ["data-jp-theme-light", "class"] });
  signal.addEventListener("abort", () => watcher.disconnect());
  window.addEventListener("resize", report, { signal }); // also when the page is zoomed
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", report, { signal });
  whenAttached(el, signal, report);
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

// ipywidgets ties a description to an input only; a slider's handle and a group of buttons have none.
function nameControls(root) {
  for (const label of root.querySelectorAll(".widget-label")) {
    const control = label.parentElement;
    const name = label.textContent;
    for (const handle of control.querySelectorAll(".noUi-handle, .widget-readout")) {
      handle.setAttribute("aria-label", name);
    }
    const buttons = control.querySelector(".widget-toggle-buttons .jupyter-button")?.parentElement;
    buttons?.setAttribute("role", "group");
    buttons?.setAttribute("aria-label", name);
  }
}
