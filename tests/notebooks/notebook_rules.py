"""What a committed notebook must look like: one function for each rule.

A rule takes a notebook (the dict in the .ipynb file) and returns its complaints, a list of str.
"""

import itertools
import json
import os
import re
from pathlib import Path
from urllib.parse import unquote

from markdown_it import MarkdownIt

MAX_BYTES = 1_000_000
MAX_LINES = 20
LESSON_CELLS = range(30, 61)
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
PATH_OR_ADDRESS = re.compile(
    r"""0x[0-9a-fA-F]{6,}                                   # <object at 0x7f…>
    | (?<![\w.:/]) (/home|/Users|/root|/tmp|/opt|/usr|/var|/work|/mnt|~) /\w
    | \b[A-Z]:\\\w                                          # C:\Users
    """,
    re.VERBOSE,
)


def load(path):
    return json.loads(Path(path).read_text(encoding="utf-8"))


def text(lines):
    """Return a multi-line string of the notebook format, which may be a list, as one str."""
    return "".join(lines)


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def markdown_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "markdown"]


def where(cell):
    return f"cell {cell.get('id')!r} ({text(cell['source']).partition(chr(10))[0][:50]})"


def tags(cell):
    return cell["metadata"].get("tags", [])


def tokens(cell):
    """Return the markdown of a cell as a flat list of markdown-it tokens."""
    flat = []
    for token in MarkdownIt().enable("table").parse(text(cell["source"])):
        flat += [token, *(token.children or [])]
    return flat


def output_texts(cell):
    """Yield every text that the outputs of a cell show."""
    for output in cell["outputs"]:
        yield text(output.get("text", ""))
        yield "\n".join(output.get("traceback", []))
        for kind, value in output.get("data", {}).items():
            if kind.startswith("text/"):
                yield re.sub(r'data:[^"\']*', "", text(value))  # base64 reads like anything


def run_in_order(notebook):
    counts = [cell["execution_count"] for cell in code_cells(notebook)]
    if counts != list(range(1, len(counts) + 1)):
        return [f"the execution counts are {counts}, not 1 to {len(counts)}"]
    return []


def ids_are_unique(notebook):
    ids = [cell.get("id") for cell in notebook["cells"]]
    missing = ["a cell has no id"] if None in ids else []
    repeated = sorted({one for one in ids if one is not None and ids.count(one) > 1})
    return missing + [f"the id {one!r} stands on several cells" for one in repeated]


def nothing_on_stderr(notebook):
    return [
        f"{where(cell)} wrote to stderr"
        for cell in code_cells(notebook)
        if any(output.get("name") == "stderr" for output in cell["outputs"])
    ]


def no_widget_state(notebook):
    """GitHub shows no notebook whose widget metadata lacks a "state"; here it is left out whole."""
    stored = ["metadata.widgets is stored"] if "widgets" in notebook["metadata"] else []
    return stored + [
        f"{where(cell)} stores a widget view, which no other kernel knows"
        for cell in code_cells(notebook)
        if any(WIDGET_VIEW in output.get("data", {}) for output in cell["outputs"])
    ]


def live_figures_shown_once(notebook):
    """A live figure stands in its cell once: not twice, and not in an Output of a widget's own."""
    complaints = []
    for cell in code_cells(notebook):
        explorers = text(cell["source"]).count(".explore(")
        pictures = sum("image/png" in output.get("data", {}) for output in cell["outputs"])
        if explorers and pictures != explorers:
            complaints.append(f"{where(cell)} shows {pictures} pictures of {explorers}")
        if "interact" in text(cell["source"]):
            complaints.append(f"{where(cell)} uses interact, which draws a new figure each time")
    return complaints


def python_kernel(notebook):
    name = notebook["metadata"].get("kernelspec", {}).get("name")
    return [] if name == "python3" else [f"its kernel is {name!r}, not 'python3'"]


def no_path_or_address(notebook):
    complaints = []
    for cell in notebook["cells"]:
        texts = [text(cell["source"]), *output_texts({"outputs": [], **cell})]
        if found := next(filter(None, map(PATH_OR_ADDRESS.search, texts)), None):
            complaints.append(f"{where(cell)} shows a path or an address: {found.group()}…")
    return complaints


def small(notebook):
    size = len(json.dumps(notebook, indent=1, ensure_ascii=False).encode("utf-8"))
    return [] if size < MAX_BYTES else [f"it has {size} bytes, {MAX_BYTES} or more"]


def short_code_cells(notebook):
    return [
        f"{where(cell)} has {lines} lines, more than {MAX_LINES}"
        for cell in code_cells(notebook)
        if (lines := len(text(cell["source"]).splitlines())) > MAX_LINES
    ]


def length_of_a_lesson(notebook):
    count = len(notebook["cells"])
    if count in LESSON_CELLS:
        return []
    return [f"it has {count} cells, not {LESSON_CELLS.start} to {LESSON_CELLS.stop - 1}"]


def a_sentence_with_every_picture(notebook):
    complaints = []
    for cell in code_cells(notebook):
        for output in cell["outputs"]:
            data = output.get("data", {})
            sentence = text(data.get("text/plain", "")).strip()
            is_sentence = " " in sentence and sentence.endswith(".") and sentence[0] != "<"
            if "image/png" in data and not is_sentence:
                complaints.append(f"{where(cell)} shows a picture that {sentence!r} does not tell")
    return complaints


def stored_errors_are_announced(notebook):
    """nbval lets a cell pass that should raise an exception and no longer does."""
    complaints = []
    for cell in code_cells(notebook):
        raised = any(output["output_type"] == "error" for output in cell["outputs"])
        if raised and "raises-exception" not in tags(cell):
            complaints.append(f"{where(cell)} stores an error")
        if not raised and "raises-exception" in tags(cell):
            complaints.append(f"{where(cell)} is tagged raises-exception and stores no error")
    return complaints


def headings(notebook):
    """Return all headings as pairs: the level, 1 to 6, and the text."""
    found = []
    for cell in markdown_cells(notebook):
        for token, content in itertools.pairwise(tokens(cell)):
            if token.type == "heading_open":
                found.append((int(token.tag[1]), content.content))
    return found


def headings_without_gaps(notebook):
    levels = [level for level, _ in headings(notebook)]
    complaints = []
    if levels[:1] != [1] or levels.count(1) != 1:
        complaints.append(f"its headings have the levels {levels}: not one title, at the top")
    for before, (level, title) in zip(levels, headings(notebook)[1:], strict=False):
        if level > before + 1:
            complaints.append(f"the heading {title!r} of level {level} follows one of {before}")
    return complaints


def links(cell):
    found = []
    for token in tokens(cell):
        address = token.attrGet("href") or token.attrGet("src")
        found += [address] if address else []
        if token.type in ("html_block", "html_inline"):
            found += re.findall(r'(?:href|src)="([^"]*)"', token.content)
    return found


def links_resolve(notebook, path, root):
    """Look up each link to a file of the project, in exact case, and each anchor in a notebook."""
    complaints = []
    for cell in markdown_cells(notebook):
        for link in links(cell):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = unquote(link).partition("#")
            target = path.parent / name if name else path
            if not exists_in_exact_case(target, root):
                complaints.append(f"{where(cell)} links to {name}, which does not exist")
            elif anchor and anchor not in anchors(target if name else notebook):
                complaints.append(f"{where(cell)} links to #{anchor}, a heading that is not there")
    return complaints


def exists_in_exact_case(target, root):
    """Return whether a path inside root exists as it is spelled, on Windows and macOS too."""
    parts = Path(os.path.relpath(target, root)).parts
    return all(
        part in os.listdir(root.joinpath(*parts[:depth])) for depth, part in enumerate(parts)
    )


def anchors(notebook):
    """Return the anchors of a notebook (or a path of one) as JupyterLab and nbconvert make them."""
    if isinstance(notebook, Path):
        notebook = load(notebook)
    return [title.replace(" ", "-") for _, title in headings(notebook)]


def no_loading_widget(notebook):
    return [
        f"{where(cell)} shows {shown!r} instead of a still picture"
        for cell in code_cells(notebook)
        for shown in output_texts(cell)
        if "loading widget" in shown.lower()
    ]


def exercises(notebook):
    """Return the stubs as a dict from the exercise's name to the code cell."""
    return {
        cell["metadata"].get("course", {}).get("exercise"): cell
        for cell in code_cells(notebook)
        if "exercise" in tags(cell)
    }


def solutions(notebook):
    """Return the solutions as a dict from the exercise's name to the Python that is folded away."""
    found = {}
    for cell in markdown_cells(notebook):
        name = cell["metadata"].get("course", {}).get("solution")
        if name is not None:
            blocks = [token for token in tokens(cell) if token.type == "fence"]
            found[name] = "".join(token.content for token in blocks if token.info == "python")
    return found


def exercises_have_hint_and_solution(notebook):
    complaints = []
    cells = notebook["cells"]
    for name, stub in exercises(notebook).items():
        if name is None:
            complaints.append(f"{where(stub)} is an exercise without a name in its metadata")
        after = cells[cells.index(stub) + 1 :]
        until = next((n for n, cell in enumerate(after) if cell["cell_type"] == "code"), len(after))
        folded = "".join(text(cell["source"]) for cell in after[:until])
        for part in ("Hint", "Solution"):
            if not re.search(rf"<details>\s*<summary>{part}[^<]*</summary>\n\n", folded):
                complaints.append(f"{where(stub)} is not followed by a folded {part.lower()}")
        if not last_line(stub).startswith("check."):
            complaints.append(f"{where(stub)} does not end by calling its checker")
    solved = {name for name, code in solutions(notebook).items() if code}
    if solved != set(exercises(notebook)):
        complaints.append(f"its exercises are {set(exercises(notebook))}, its solutions {solved}")
    return complaints


def last_line(cell):
    return text(cell["source"]).rstrip().rpartition("\n")[2]
