"""GetDirectoryData (MS-MQBR 3.1.5.9): routing's reads of the directory.

The text returns Nothing both for no match and for an error, and so would erase a good routing
table whenever the directory is briefly unavailable. Here the error is returned beside the objects
(E-MQBR-09, E-MQBR-10).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import DirectoryError, StorageError
from mqis.protocol.ports import View
from mqis.wire.errors import MqisError
from mqis.wire.mqds.objecttype import ObjectType

#: The errors of a failed read: any DirectoryOperationResult but Success.
READ_ERRORS = (DirectoryError, StorageError)

HandleT = TypeVar("HandleT")


class DirectoryReads(Protocol[HandleT]):
    """Read Directory Begin, Next and End (MS-MQDMPR 3.1.7.1.21 to .23); errors are raised."""

    def begin(self, object_type: ObjectType) -> HandleT: ...

    def next(self, handle: HandleT) -> DirectoryObject | None:
        """The next object; None for EndOfData."""

    def end(self, handle: HandleT) -> None: ...


@dataclass(frozen=True, slots=True)
class DirectoryData:
    """The result of a read. ``objects`` is None for the text's Nothing, ``error`` the reason."""

    objects: tuple[DirectoryObject, ...] | None
    error: MqisError | None = None


def get_directory_data(reads: DirectoryReads[HandleT], object_type: ObjectType) -> DirectoryData:
    """All objects of a type; none if a read fails halfway. Routing reads them without a filter."""
    try:
        handle = reads.begin(object_type)
    except READ_ERRORS as error:
        return DirectoryData(None, error)
    found: list[DirectoryObject] = []
    try:
        while (obj := reads.next(handle)) is not None:
            found.append(obj)
    except READ_ERRORS as error:
        return DirectoryData(None, error)
    finally:
        with suppress(*READ_ERRORS):  # the text ignores the result of End
            reads.end(handle)
    return DirectoryData(tuple(found) or None)


class ViewReads:
    """The three reads over a view of a store. A handle is an iterator of the objects left."""

    def __init__(self, view: View) -> None:
        self._view = view

    def begin(self, object_type: ObjectType) -> Iterator[DirectoryObject]:
        return self._view.objects(object_type)

    def next(self, handle: Iterator[DirectoryObject]) -> DirectoryObject | None:
        return next(handle, None)

    def end(self, handle: Iterator[DirectoryObject]) -> None:
        """Does nothing: only the view is open."""
