"""The length of a security answer is not signed; what it would cut off is."""

from __future__ import annotations

import pytest

from mqis.client.authentication import SignatureError
from mqis.client.directory import _without_padding
from mqis.wire.mqds.dscomm import SecurityGot


def test_padding_is_cut_off() -> None:
    assert _without_padding(SecurityGot(b"abc\0\0", 3, b"", 0)) == b"abc"


@pytest.mark.parametrize("length", [0, 1, 2])
def test_a_length_that_cuts_off_data_is_refused(length: int) -> None:
    with pytest.raises(SignatureError, match="length"):
        _without_padding(SecurityGot(b"abc\0\0", length, b"", 0))
