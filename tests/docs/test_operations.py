"""docs/operations.md explains the file of an enterprise."""

from __future__ import annotations

import tomllib

from mqis.enterprise.example import EXAMPLE
from tests.docs.documents import text_of

TEXT = text_of("operations.md")


def test_every_part_of_the_file_is_explained() -> None:
    for key in tomllib.loads(EXAMPLE):
        assert f"[[{key}]]" in TEXT or f"`[{key}" in TEXT, key
