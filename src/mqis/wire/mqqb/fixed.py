"""The fixed part of a header in one step: a message has forty of these fields."""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error


def pack(form: Struct, *values: int | bytes) -> bytes:
    """A value that its field cannot hold is the caller's ``ValueError``, as with a ``Writer``."""
    try:
        return form.pack(*values)
    except struct_error as error:
        raise ValueError(f"{values} do not fit their fields: {error}") from None
