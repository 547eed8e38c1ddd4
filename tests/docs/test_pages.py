"""What every page has to keep: links, code and commands that exist, and the project's words."""

import ast
import re
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, ROOT, blocks, page
from typer.main import get_command

from partage.cli import app


@pytest.mark.parametrize("name", PAGES)
def test_python_blocks_can_be_parsed(name):
    for kind, text in blocks(name):
        if kind == "python":
            assert ast.parse(text).body


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_to_files(name):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page(name)):
        if "://" not in target:
            assert ((ROOT / name).parent / target).exists(), target


@pytest.mark.parametrize("name", PAGES)
def test_commands_and_flags_exist(name):
    spans = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", page(name)) + [block.text for block in blocks(name)]
    shown = [line for span in spans for line in span.replace("\\\n", " ").splitlines()]
    for words in re.findall(r"(?:^|; |do |bin/)partage ([a-z]+ [^\n|;>]*|[a-z]+$)", "\n".join(shown), re.MULTILINE):
        command, given = get_command(app), words.split()
        while given and hasattr(command, "commands"):
            assert given[0] in command.commands, words
            command = command.commands[given.pop(0)]
        known = {flag for option in command.params for flag in option.opts}
        assert {word for word in given if re.match(r"--?[a-z]", word)} <= known, words


def test_every_page_is_linked_from_the_readme_or_another_page():
    linked = {
        ((ROOT / name).parent / target).resolve()
        for name in PAGES
        for target in re.findall(r"\]\(([^)#:]+)[^)]*\)", page(name))
    }
    assert {ROOT / name for name in PAGES if name.startswith("docs/")} <= linked


def test_every_figure_is_on_a_page():
    shown = {
        ((ROOT / name).parent / target).resolve()
        for name in PAGES
        for target in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page(name))
    }
    assert {*(ROOT / "docs" / "figures").iterdir()} <= shown


WRONG_WORDS = {  # a pattern, and what to write instead
    r"\b(she|her|hers|herself)\b": "it or they",
    r"\bruled out\b": "eliminated",
    r"\bspec \d": "nothing: readers do not have that document",
}
KINDS = ("src/**/*.py", "src/**/*.html", "src/**/*.js", "tests/**/*.py", "bench/**/*.py")
SOURCES = [str(file.relative_to(ROOT)) for kind in KINDS for file in ROOT.glob(kind) if "vendor" not in file.parts]


@pytest.mark.parametrize("pattern", WRONG_WORDS)
def test_one_word_for_one_thing(pattern):
    found = [
        f"{name}: {match[0]!r}; write {WRONG_WORDS[pattern]}"
        for name in [*PAGES, *SOURCES]
        for match in re.finditer(pattern, page(name), re.IGNORECASE)
        if ROOT / name != Path(__file__)
    ]
    assert not found, "\n".join(found)
