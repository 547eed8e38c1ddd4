"""Build the site: `python -m website.build` (or `make docs`).

It lays out a folder of pages: docs/ with its formulas, the executed notebooks, and Python for the page that plays.
Then a generator turns them into HTML: Zensical, or mkdocs-material with `--generator mkdocs`. Nothing is fetched
meanwhile, if Pyodide was fetched before (`python -m website.pyodide`).
"""

import argparse
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from website import pyodide
from website.math import with_math
from website.notebooks import render

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "partage"
PLAYED = ("*.py", "agreement/*.py", "rules/*.py", "settle/*.py")  # what play.py imports, and what that imports
COMMANDS = {
    "zensical": ["zensical", "build", "--strict", "--clean"],
    "mkdocs": ["mkdocs", "build", "--strict", "--clean"],
}


def lay_out(folder: Path, play: bool = True, notebooks: bool = True) -> None:
    """Write mkdocs.yml and all pages into a folder."""
    pages = folder / "docs"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(ROOT / "docs", pages)
    shutil.copy(ROOT / "mkdocs.yml", folder)
    for page in pages.rglob("*.md"):
        page.write_text(with_math(page.read_text(encoding="utf-8")), encoding="utf-8")
    for source in sorted((ROOT / "notebooks").glob("*.py")):
        if notebooks:
            render(source, pages / "notebooks")
        else:  # a quick look at the rest of the site
            (pages / "notebooks").mkdir(exist_ok=True)
            (pages / "notebooks" / f"{source.stem}.md").write_text(
                f"# {source.stem}\n\nNot executed.\n", encoding="utf-8"
            )
    if play:
        add_python(pages / "play" / "runtime")


def add_python(folder: Path) -> None:
    """Write Pyodide and the files of Partage that it runs into a folder."""
    pyodide.unpack(folder)
    with zipfile.ZipFile(folder / "partage.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(ROOT / "docs" / "play" / "play.py", "play.py")
        for file in sorted(file for pattern in PLAYED for file in PACKAGE.glob(pattern)):
            archive.write(file, file.relative_to(PACKAGE.parent))


def build(folder: Path, generator: str = "zensical", play: bool = True, notebooks: bool = True) -> Path:
    """Build the site in a folder; return where its HTML is. A warning, such as a link to nowhere, is an error."""
    folder.mkdir(parents=True, exist_ok=True)
    lay_out(folder, play, notebooks)
    program = Path(sys.executable).with_name(COMMANDS[generator][0])
    command = [str(program), *COMMANDS[generator][1:], "--config-file", str(folder / "mkdocs.yml")]
    # mkdocstrings imports website.examples
    subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, "NO_COLOR": "1", "PYTHONPATH": str(ROOT)})
    return folder / "site"


def main() -> None:
    """Read the options and build."""
    options = argparse.ArgumentParser(prog="python -m website.build", description="Build the site.")
    options.add_argument("--into", type=Path, default=ROOT / "build" / "website", help="the folder to build in")
    options.add_argument("--generator", choices=sorted(COMMANDS), default="zensical")
    options.add_argument("--no-play", action="store_true", help="leave out the Python of the page that plays")
    options.add_argument("--no-notebooks", action="store_true", help="do not execute the notebooks: a quick look")
    given = options.parse_args()
    try:
        site = build(given.into.resolve(), given.generator, not given.no_play, not given.no_notebooks)
    except pyodide.Missing as missing:
        sys.exit(str(missing))
    except subprocess.CalledProcessError:
        sys.exit("The site has warnings, which are listed above; mend them and build again.")
    print(
        f"The site is in {site}; look at it with: {sys.executable} -m http.server --bind 127.0.0.1 --directory {site}"
    )


if __name__ == "__main__":
    main()
