"""Errors that say what to do."""

from __future__ import annotations

from mqis.protocol.errors import REPORTED, DamagedStore, StorageError, StoreUnavailable


def test_damage_says_what_to_do() -> None:
    error = DamagedStore("object 12 is damaged")
    assert error.detail == "object 12 is damaged"
    assert str(error) == f"object 12 is damaged; {DamagedStore.ADVICE}"
    assert "mqis restore" in str(error)


def test_a_store_reports_its_troubles_itself() -> None:
    assert isinstance(DamagedStore(""), REPORTED)
    assert isinstance(StoreUnavailable(""), REPORTED)
    assert not isinstance(StorageError(""), REPORTED)
