// The view of a live figure: puts the kernel's pixels on the screen, says its sentence, and reports
// theme, resolution, pointer and keys.

export default { render };

function render({ model, el }) {
  const root = document.createElement("div");
  el.append(root);
}
