"""Marks for the tables of 3.1.4.21.8: some rows are departures (E-MQDS-05, E-MQDS-06)."""

from __future__ import annotations

import pytest

_DEPARTURES = frozenset(
    {
        "MQDS-3.1.4.21.8.2-01",
        "MQDS-3.1.4.21.8.2-02",
        "MQDS-3.1.4.21.8.2-09",
        "MQDS-3.1.4.21.8.3-04",
        "MQDS-3.1.4.21.8.3-05",
        "MQDS-3.1.4.21.8.3-11",
    }
)


def mark_of(id_: str) -> pytest.MarkDecorator:
    return pytest.mark.departs(id_) if id_ in _DEPARTURES else pytest.mark.req(id_)
