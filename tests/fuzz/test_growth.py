"""The search for superlinear time: it tells quadratic from linear work, and covers all entries."""

from __future__ import annotations

from random import Random

import pytest

from fuzz.growth import ENTRIES, ERRORS, KB, Entry, grown, is_superlinear, searched, seconds_of
from fuzz.targets import Target


def linear(data: bytes) -> int:
    return sum(data)


def quadratic(data: bytes) -> int:
    """Cuts the rest off again and again, as parsers do that slice."""
    return sum(data[at:].count(b"x") for at in range(0, len(data), 256))


def compared(run: object, small: int, large: int) -> bool:
    assert callable(run)
    times = [(size, seconds_of(run, bytes(size))) for size in (small, large)]
    return is_superlinear(times[0], times[1])


def test_only_the_ratio_decides() -> None:
    assert not is_superlinear((1000, 0.01), (32_000, 0.32))
    assert not is_superlinear((1000, 1.0), (32_000, 32.0)), "a slow machine"
    assert is_superlinear((1000, 0.01), (32_000, 0.32 * 4))
    assert not is_superlinear((1000, 0.000_001), (32_000, 0.003)), "too short to tell"
    assert not is_superlinear((1000, 0.01), (1000, 9.0)), "both are of one size"


def test_quadratic_work_is_found_and_linear_work_is_not() -> None:
    assert compared(quadratic, 16 * KB, 512 * KB)
    assert not compared(linear, 16 * KB, 512 * KB)


def test_the_search_finds_a_target_that_is_quadratic() -> None:
    found = searched(Target("sid", quadratic), Random(1))
    assert found is not None
    assert found.startswith("sid: ")
    assert searched(Target("sid", linear), Random(1)) is None


def test_an_input_grows_in_its_middle() -> None:
    make = grown(b"abcdef", Random(3))
    assert len(make(1000)) > 900
    assert make(1000)[:1] == b"a"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_entry_makes_inputs_of_any_size(entry: Entry) -> None:
    small, large = entry.make(KB), entry.make(32 * KB)
    assert len(large) > len(small) > KB // 4
    for data in (small, large):
        try:
            entry.run(data)
        except (*ERRORS, RecursionError):
            continue


def test_every_way_of_a_stranger_is_in_the_table() -> None:
    names = " ".join(entry.name for entry in ENTRIES)
    for way in ("PDU", "SPNEGO", "NTLM", "NDR", "mqqb", "queueing", "discovery", "HTTP", "LDAP"):
        assert way in names
    for way in ("LDIF", "JSON", "pcap"):
        assert way in names
