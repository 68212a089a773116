"""Collects the pages of the documentation site: docs/, the README, the reference of mqis.client.

Usage: python tools/site_pages.py DIRECTORY

In the repository pages link to source files as well. The site has no source files, so there such a
link becomes plain text. ``make site`` runs this, then mkdocs, which refuses links that lead
nowhere.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

ROOT = Path(__file__).resolve().parents[1]

#: Pages outside docs/, by their names on the site.
OTHER_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
#: Files that pages of the site may link to, besides other pages.
SHOWN = {".md", ".png", ".svg", ".tsv", ".csv"}
REFERENCE = """\
# Reference of mqis.client

The guide with examples is [the client](client.md).

::: mqis.client
"""

#: A Markdown link or image without its text: what it leads to, up to a title or the bracket.
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
_FENCE = re.compile(r"^(```.*?^```[^\n]*$)", re.MULTILINE | re.DOTALL)


def page_names(root: Path) -> dict[str, str]:
    """The files of the site by their paths in the repository."""
    docs = root / "docs"
    found = (path.relative_to(docs) for path in docs.rglob("*") if path.suffix in SHOWN)
    names = {f"docs/{path.as_posix()}": path.as_posix() for path in sorted(found)}
    # mkdocs shows the README of a directory as its index; there is one for the whole site.
    return names | OTHER_PAGES


def site_text(text: str, source: str, names: dict[str, str]) -> str:
    """The text of a page with its links as the site has them; ``source`` is its repository path."""
    parts = _FENCE.split(text)
    parts[::2] = [_LINK.sub(lambda m: _link(m, source, names), part) for part in parts[::2]]
    return "".join(parts)


def _link(match: re.Match[str], source: str, names: dict[str, str]) -> str:
    image, text, target = match.groups()
    path, mark, anchor = target.partition("#")
    if "://" in target or target.startswith("mailto:") or not path:
        return match[0]
    wanted = normpath((PurePosixPath(source).parent / path).as_posix())
    if wanted not in names:
        return text
    here = PurePosixPath(names[source]).parent.as_posix()
    return f"{image}[{text}]({relpath(names[wanted], here)}{mark}{anchor})"


def collect(root: Path, out: Path) -> int:
    """Writes all pages to ``out``, which is emptied first; returns their number."""
    names = page_names(root)
    shutil.rmtree(out, ignore_errors=True)
    for source, name in names.items():
        target = out / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.suffix == ".md":
            target.write_text(site_text((root / source).read_text("utf-8"), source, names), "utf-8")
        else:
            shutil.copyfile(root / source, target)
    (out / "reference.md").write_text(REFERENCE, "utf-8")
    return len(names) + 1


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python tools/site_pages.py DIRECTORY", file=sys.stderr)
        return 2
    print(f"{collect(ROOT, Path(arguments[0]))} files in {arguments[0]}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
