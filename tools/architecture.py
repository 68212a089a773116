"""Draws the layers and their imports, read from the code, as docs/architecture.svg.

Usage: python tools/architecture.py [--check]

``--check`` only checks whether the picture in the repository is up to date.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "mqis"
PICTURE = ROOT / "docs" / "architecture.svg"

_WIDTH, _HEIGHT = 132, 40
_GAP_X, _GAP_Y = 34, 56
_MARGIN = 20
_STYLE = """
rect { fill: #eef3f8; stroke: #35506b; rx: 6 }
text { font: 14px system-ui, sans-serif; fill: #1b2733; text-anchor: middle }
path { fill: none; stroke: #7a8da1; stroke-width: 1.3 }
marker path { fill: #7a8da1; stroke: none }
@media (prefers-color-scheme: dark) {
  rect { fill: #1f2a35; stroke: #8fb3d9 } text { fill: #e6edf3 }
}"""


def layers(package: Path) -> dict[str, set[str]]:
    """The layers that the modules of each layer import, lazily or not."""
    found: dict[str, set[str]] = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        if parts in (("__init__",), ("__main__",)):  # which are no layers
            continue
        imports = found.setdefault(parts[0], set())
        imports |= {name for name in _imported(path) if name != parts[0]}
    known = set(found)
    return {layer: imports & known for layer, imports in found.items()}


def _imported(path: Path) -> Iterable[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
            if node.module == "mqis":
                names = [f"mqis.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if name.startswith("mqis."):
                yield name.split(".")[1]


@dataclass(frozen=True, slots=True)
class Place:
    x: float
    y: float


def arrange(imports: Mapping[str, set[str]]) -> tuple[dict[str, Place], tuple[float, float]]:
    """Places each layer above all that it imports, and layers without imports at the bottom."""
    graph = nx.DiGraph()
    graph.add_nodes_from(sorted(imports))
    graph.add_edges_from((a, b) for a in sorted(imports) for b in sorted(imports[a]))
    height: dict[str, int] = {}
    for layer in reversed(list(nx.lexicographical_topological_sort(graph))):
        height[layer] = 1 + max((height[below] for below in imports[layer]), default=-1)
    levels = range(max(height.values()) + 1)
    rows = [sorted(name for name in height if height[name] == level) for level in levels]
    wide = max(map(len, rows)) * (_WIDTH + _GAP_X) - _GAP_X + 2 * _MARGIN
    tall = len(rows) * (_HEIGHT + _GAP_Y) - _GAP_Y + 2 * _MARGIN
    places = {}
    for n, row in enumerate(rows):
        y = tall - _MARGIN - _HEIGHT - n * (_HEIGHT + _GAP_Y)
        width = len(row) * (_WIDTH + _GAP_X) - _GAP_X
        # Shifts every other row, so that arrows over several rows pass between boxes.
        aside = (n % 2) * (_WIDTH + _GAP_X) / 2 - (_WIDTH + _GAP_X) / 4
        for k, name in enumerate(row):
            places[name] = Place((wide - width) / 2 + k * (_WIDTH + _GAP_X) + aside, y)
    return places, (wide + _WIDTH / 2, tall)


def picture(imports: Mapping[str, set[str]]) -> str:
    direct = nx.transitive_reduction(nx.DiGraph([(a, b) for a in imports for b in imports[a]]))
    places, (wide, tall) = arrange(imports)
    lines = [
        (
            '<svg xmlns="http://www.w3.org/2000/svg" '
            f'viewBox="{-_WIDTH / 4:g} 0 {wide:g} {tall:g}" width="{wide:g}" '
            'role="img" aria-label="The layers of mqis and what they import">'
        ),
        f"<style>{_STYLE}\n</style>",
        (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>'
        ),
    ]
    for above, below in sorted(direct.edges):
        start, end = places[above], places[below]
        x1, y1 = start.x + _WIDTH / 2, start.y + _HEIGHT
        x2, y2 = end.x + _WIDTH / 2, end.y
        bend = (y2 - y1) / 2
        curve = f"M{x1:g} {y1:g}C{x1:g} {y1 + bend:g} {x2:g} {y2 - bend:g} {x2:g} {y2:g}"
        lines.append(f'<path d="{curve}" marker-end="url(#tip)"/>')
    for name, place in sorted(places.items()):
        lines.append(f'<rect x="{place.x:g}" y="{place.y:g}" width="{_WIDTH}" height="{_HEIGHT}"/>')
        middle, line = place.x + _WIDTH / 2, place.y + _HEIGHT / 2 + 5
        lines.append(f'<text x="{middle:g}" y="{line:g}">{escape(name)}</text>')
    return "\n".join([*lines, "</svg>", ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    made = picture(layers(PACKAGE))
    if arguments.check:
        if PICTURE.exists() and PICTURE.read_text(encoding="utf-8") == made:
            return 0
        print(
            "docs/architecture.svg is out of date: run python tools/architecture.py",
            file=sys.stderr,
        )
        return 1
    PICTURE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
