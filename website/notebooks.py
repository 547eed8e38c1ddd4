"""Notebooks as pages: each `notebooks/*.py` is executed, and its text, code and output become Markdown."""

import base64
from pathlib import Path
from typing import Any

import jupytext
from nbclient import NotebookClient
from nbformat import NotebookNode

SECONDS = 600  # that a cell may take; it only ends one that hangs


def executed(source: Path, folder: Path) -> NotebookNode:
    """Return the notebook with the output of every cell. A cell that fails is an error."""
    notebook = jupytext.read(source, fmt="py:percent")
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


def render(source: Path, pages: Path) -> None:
    """Write the page of a notebook, its figures, and its source to download, into the folder of pages."""
    pages.mkdir(parents=True, exist_ok=True)
    (pages / source.name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    parts, figures = [], 0
    for cell in executed(source, pages).cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(_fence("python", cell.source))
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/png" in data:
                figures += 1
                name = f"{source.stem}-{figures}.png"
                (pages / name).write_bytes(base64.b64decode(data["image/png"]))
                parts.append(f"![Figure {figures} of this notebook]({name})")
            elif text := _text(output):
                parts.append(_fence("text", text))
    parts.append(
        f"[Download this notebook]({source.name}): `jupytext --to notebook {source.name}` converts it for Jupyter."
    )
    (pages / f"{source.stem}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _text(output: dict[str, Any]) -> str:
    """Return what a cell printed, or the text of its value."""
    text: str = output.get("text") or output.get("data", {}).get("text/plain", "")
    return text.rstrip()


def _fence(kind: str, text: str) -> str:
    return f"```{kind}\n{text}\n```"
