"""The result of a directory event (MS-MQDMPR 3.1.1.17)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from mqis.protocol.errors import DirectoryError
from mqis.wire.hresult import HResult

T = TypeVar("T")


class DirectoryOperationResult(Enum):
    """rStatus. MS-MQDS never returns ObjectAlreadyExists, but GenericError."""

    SUCCESS = "Success"
    GENERIC_ERROR = "GenericError"
    DIRECTORY_NOT_CONNECTED = "DirectoryNotConnected"
    OBJECT_NOT_FOUND = "ObjectNotFound"
    ATTRIBUTE_NOT_FOUND = "AttributeNotFound"
    END_OF_DATA = "EndOfData"
    OBJECT_ALREADY_EXISTS = "ObjectAlreadyExists"


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """The result of an event: its status, and on success its value.

    A status combines many failures. ``error`` is the cause, with the server's HRESULT if there is
    one.
    """

    status: DirectoryOperationResult
    value: T | None = None
    error: Exception | None = None

    @property
    def ok(self) -> bool:
        """True if the status is SUCCESS."""
        return self.status is DirectoryOperationResult.SUCCESS

    def unwrap(self) -> T:
        """Returns the value, or raises the error, for callers that prefer exceptions."""
        if self.ok:
            return self.value  # type: ignore[return-value]  # T is Optional where it may be None
        if self.error is not None:
            raise self.error
        raise DirectoryError(HResult.MQDS_OBJECT_NOT_FOUND, "no object matches the filter")
