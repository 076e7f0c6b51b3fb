"""The Python in README.md and docs/ runs as printed, each page from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fhelium as fh

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md")))
    if BLOCK.search(page.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_runs(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Comments of the form `print(...)  # value` on a page are what it prints."""
    problem = fh.build_info()["cuda"]["problem"]
    if page.name == "cuda.md" and problem is not None:
        pytest.skip(problem)
    text = page.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "page"}
    for block in BLOCK.finditer(text):
        # Blank lines keep the page's line numbers, so that a failure points into the page.
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block[1], str(page), "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    for expected in re.findall(r"^print\(.*\) +# (.+)$", text, re.MULTILINE):
        assert expected in printed
