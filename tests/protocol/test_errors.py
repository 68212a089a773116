"""Errors that say what to do."""

from __future__ import annotations

import pickle

import pytest

from mqis.protocol.errors import (
    REPORTED,
    ChangedMeanwhile,
    DamagedStore,
    DirectoryError,
    StorageError,
    StoreUnavailable,
)
from mqis.wire.hresult import HResult


def test_damage_says_what_to_do() -> None:
    error = DamagedStore("object 12 is damaged")
    assert error.detail == "object 12 is damaged"
    assert str(error) == f"object 12 is damaged; {DamagedStore.ADVICE}"
    assert "mqis restore" in str(error)


def test_a_store_reports_its_troubles_itself() -> None:
    assert isinstance(DamagedStore(""), REPORTED)
    assert isinstance(StoreUnavailable(""), REPORTED)
    assert not isinstance(StorageError(""), REPORTED)


@pytest.mark.parametrize(
    "error",
    [
        DirectoryError(HResult.MQ_ERROR_QUEUE_EXISTS, "a queue m\\q exists"),
        ChangedMeanwhile("another server was faster"),
    ],
)
def test_errors_travel_between_processes(error: DirectoryError) -> None:
    copied = pickle.loads(pickle.dumps(error))
    assert type(copied) is type(error)
    assert (copied.hresult, copied.detail, str(copied)) == (
        error.hresult,
        error.detail,
        str(error),
    )
