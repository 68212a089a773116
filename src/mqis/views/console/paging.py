"""Long lists: the part that a page shows, and the filter above it, by one rule for all pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from mqis.protocol.directory.objects import name_key

T = TypeVar("T")

#: The rows of a page.
ROWS = 100


@dataclass(frozen=True, slots=True)
class PagedRows(Generic[T]):
    rows: tuple[T, ...]
    #: The number of rows of all pages.
    total: int
    page: int
    pages: int


def paged(items: Sequence[T], wanted: int, size: int = ROWS) -> PagedRows[T]:
    """The rows of a page; the nearest page if there is no such one."""
    page, pages = page_of(len(items), wanted, size)
    return PagedRows(tuple(items[(page - 1) * size : page * size]), len(items), page, pages)


def page_of(total: int, wanted: int, size: int = ROWS) -> tuple[int, int]:
    """The number of the page to show, and the number of pages."""
    pages = max(1, -(-total // size))
    return min(max(1, wanted), pages), pages


def mentions(text: str, *names: str) -> bool:
    """Returns whether one of the names holds the text, in any case; an empty text fits all."""
    key = name_key(text)
    return not key or any(key in name_key(name) for name in names)
