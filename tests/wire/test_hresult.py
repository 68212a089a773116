"""HRESULT names, numbers, severity and meanings."""

from __future__ import annotations

import csv
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.hresult import (
    CUSTOMER_BIT,
    HResult,
    is_customer,
    is_failure,
    meaning_of,
    name_of,
)

ENUMS = Path(__file__).parents[2] / "docs" / "spec" / "mqds-enums.csv"


def listed() -> list[tuple[str, int]]:
    with ENUMS.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["group"].startswith("hresult")]
    return [(row["name"], int(row["value"], 16)) for row in rows if row["value"] != "not given"]


def test_the_table_of_the_specification_was_read() -> None:
    names = {name for name, _ in listed()}
    assert {"MQ_OK", "MQDS_E_NO_MORE_DATA", "MQ_ERROR_NO_DS"} <= names
    assert len(names) == 49


@pytest.mark.parametrize(("name", "code"), listed())
def test_names_and_numbers_of_the_specification(name: str, code: int) -> None:
    assert HResult[name] == code
    assert HResult[name_of(code)] == code


# MS-MQMQ 2.4 lists these numbers of each kind; the gaps are its own.
@pytest.mark.parametrize(
    ("first", "last", "gaps"),
    [
        (0x400E0001, 0x400E000B, {0x7, 0x8}),
        (
            0xC00E0001,
            0xC00E009C,
            {
                *(0xA, 0xC, 0xE, 0xF, 0x12, 0x15, 0x16, 0x17, 0x29, 0x32, 0x34, 0x47, 0x4D, 0x4F),
                *(0x52, 0x53, 0x54, 0x57, 0x59, 0x97, 0x98),
            },
        ),
    ],
)
def test_every_number_of_the_error_table_is_there(first: int, last: int, gaps: set[int]) -> None:
    expected = {code for code in range(first, last + 1) if code & 0xFFFF not in gaps}
    assert {int(code) for code in HResult if first <= code <= last} == expected


def test_numbers_with_two_names() -> None:
    assert HResult["ERROR_SUCCESS"] is HResult.MQ_OK
    assert HResult["MQ_ERROR_ILLEGAL_PROPERTY"] is HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE
    assert (
        HResult["MQ_INFORMATION_MACHINE_OWNED_BY_NT4_PSC"]
        is HResult.MQ_INFORMATION_QUEUE_OWNED_BY_NT4_PSC
    )
    aliases = set(HResult.__members__) - {code.name for code in HResult}
    assert len(aliases) == 3


def test_a_code_without_a_number_has_no_member() -> None:
    assert "MQ_ERROR_FUNCTION_NOT_SUPPORTED" not in HResult.__members__


@pytest.mark.parametrize("code", HResult)
def test_each_has_a_sentence(code: HResult) -> None:
    assert 15 <= len(code.meaning) <= 100
    assert code.meaning[0].isupper()
    assert code.meaning.endswith(".")
    assert meaning_of(code) == code.meaning


def test_no_two_mean_the_same() -> None:
    assert len({code.meaning for code in HResult}) == len(HResult)


@pytest.mark.req("MQDS-2.2.1-01")
@pytest.mark.parametrize(
    ("code", "failure"),
    [
        (0x00000000, False),
        (0x00090312, False),
        (0x400E0001, False),
        (0x400E03EB, False),
        (0x7FFFFFFF, False),
        (0x80000000, True),
        (0x8000500D, True),
        (0x80070005, True),
        (0xC00E0001, True),
        (0xC00E052B, True),
        (0xFFFFFFFF, True),
    ],
)
def test_the_severity_bit_decides(code: int, failure: bool) -> None:
    assert is_failure(code) is failure


@pytest.mark.req("MQDS-2.2.1-01")
@pytest.mark.parametrize("code", HResult)
def test_names_agree_with_severity(code: HResult) -> None:
    successes = ("MQ_OK", "SEC_I_", "MQ_INFORMATION_")
    assert is_failure(code) is not code.name.startswith(successes)


@pytest.mark.req("MQDS-2.2.1-01")
@given(st.integers(0, 0xFFFFFFFF))
def test_32_bits_signed_or_not_are_the_same_code(code: int) -> None:
    signed = code - (1 << 32) if code >> 31 else code
    assert is_failure(signed) is is_failure(code) is (signed < 0)
    assert name_of(signed) == name_of(code)
    assert meaning_of(signed) == meaning_of(code)


@pytest.mark.parametrize("code", [1 << 32, -(1 << 31) - 1])
def test_more_than_32_bits_are_no_code(code: int) -> None:
    for function in (name_of, meaning_of, is_failure, is_customer):
        with pytest.raises(ValueError, match="32 bits"):
            function(code)


@pytest.mark.req("MQDS-1.8-01")
def test_a_private_failure_has_the_customer_bit() -> None:
    private = 0xE00E0001
    assert is_customer(private)
    assert is_failure(private)
    assert name_of(private) == "0xE00E0001 (customer)"
    assert "private" in meaning_of(private)
    assert not is_customer(private & ~CUSTOMER_BIT)
    assert name_of(private & ~CUSTOMER_BIT) == "MQ_ERROR"


@pytest.mark.req("MQDS-1.8-01")
@pytest.mark.parametrize("code", HResult)
def test_no_code_of_the_specification_is_private(code: HResult) -> None:
    assert not is_customer(code)
    assert name_of(code | CUSTOMER_BIT) == f"0x{code | CUSTOMER_BIT:08X} (customer)"


@pytest.mark.parametrize(
    ("code", "name", "meaning"),
    [
        (0x80070005, "0x80070005", "Windows system error 5."),
        (0xC00E0FFF, "0xC00E0FFF", "A Message Queuing failure code that is not documented."),
        (0x400E0FFF, "0x400E0FFF", "A Message Queuing success code that is not documented."),
        (0x80090308, "0x80090308", "A failure code of another component (facility 9, code 776)."),
        (0x00000001, "0x00000001", "A success code of another component (facility 0, code 1)."),
    ],
)
def test_unknown_codes_keep_their_number(code: int, name: str, meaning: str) -> None:
    assert name_of(code) == name
    assert meaning_of(code) == meaning


def test_a_member_is_its_number_and_pickles() -> None:
    assert HResult(0xC00E0006) is HResult.MQ_ERROR_INVALID_PARAMETER
    assert int(HResult.MQ_ERROR_INVALID_PARAMETER) == 0xC00E0006
    assert pickle.loads(pickle.dumps(HResult.MQ_ERROR)) is HResult.MQ_ERROR
