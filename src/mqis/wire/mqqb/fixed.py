"""The packing of a header's fixed part in one step: a message has forty of these fields."""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error


def pack(form: Struct, *values: int | bytes) -> bytes:
    """Packs the values; raises ``ValueError`` if one does not fit, as a ``Writer`` does."""
    try:
        return form.pack(*values)
    except struct_error as error:
        raise ValueError(f"{values} do not fit in their fields: {error}") from None
