"""Classes of ``mqis.client`` are still found by the names that they had before."""

from __future__ import annotations

import pytest

import mqis.client


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Connection", "DirectoryConnection"),
        ("DirectoryEvents", "ClientEvents"),
        ("DirectoryObject", "DirectoryElement"),
    ],
)
def test_an_old_name_gives_the_class_and_a_warning(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{old} is now called {new}"):
        assert getattr(mqis.client, old) is getattr(mqis.client, new)


def test_other_names_are_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = mqis.client.Nothing
