"""Reads the schema of a forest, to say by name what Message Queuing lacks there."""

from __future__ import annotations

from contextlib import aclosing

from mqis.protocol.activedirectory.schema import DISPLAY_NAME, needed_names, schema_query
from mqis.runtime.activedirectory.reading import ForestReader


async def missing_names(reader: ForestReader) -> list[str]:
    """The classes and attributes that are needed and that the schema does not show."""
    found: set[bytes] = set()
    async with aclosing(reader.client.search(schema_query(reader.forest))) as entries:
        async for entry in entries:
            found |= {name.lower() for name in entry.values(DISPLAY_NAME)}
    return [name for name in needed_names() if name.lower().encode() not in found]
