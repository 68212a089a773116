"""Entries on disk, by type: a file in any order is imported in ours, whatever its size."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import IO

from mqis.protocol.ldap.entry import LdapEntry
from mqis.wire.mqds.objecttype import ObjectType


class EntrySpool:
    """Files without names, which vanish with the process; nobody else can write into them."""

    def __init__(self) -> None:
        self._files: dict[ObjectType, IO[bytes]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> EntrySpool:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, object_type: ObjectType, entry: LdapEntry) -> None:
        file = self._files.get(object_type)
        if file is None:
            file = self._stack.enter_context(TemporaryFile())  # noqa: SIM115
            self._files[object_type] = file
        pickle.dump((entry.name, entry.attributes), file, pickle.HIGHEST_PROTOCOL)

    def entries(self, object_type: ObjectType) -> Iterator[LdapEntry]:
        """Yields the entries of a type in the order in which they came, as often as asked."""
        file = self._files.get(object_type)
        if file is None:
            return
        file.seek(0)
        while True:
            try:
                name, attributes = pickle.load(file)
            except EOFError:
                return
            yield LdapEntry(name, attributes)
