"""Pages and pictures: one engine of templates, which escapes everything, and one drawer.

Other modules decide what is shown, as plain values; the templates decide how it looks. The console
has its pages in ``web/templates``; the report, the comparison and all pictures are here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mqis import texts

_TEMPLATES = Path(__file__).parent / "templates"


def environment(*directories: Path) -> Environment:
    """The engine for the templates of these directories and of this package."""
    made = Environment(
        loader=FileSystemLoader([*directories, _TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["thousands"] = lambda number: f"{number:,}"
    made.filters["counted"] = texts.counted
    for spelling in (texts.agreeing, texts.and_more, texts.duration, texts.moment, texts.some):
        made.globals[spelling.__name__] = spelling
    return made


@cache
def _own() -> Environment:
    return environment()


def rendered(template: str, **values: object) -> str:
    """A page or a picture of this package as text."""
    return _own().get_template(template).render(values) + "\n"


def pieces(template: str, **values: object) -> Iterator[str]:
    """Yields the page in pieces, so that a large one is never in memory as a whole."""
    yield from _own().get_template(template).generate(values)
    yield "\n"
