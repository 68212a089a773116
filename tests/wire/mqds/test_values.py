"""Values get their types from the catalogue."""

from __future__ import annotations

import pytest

from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import pair, prop, props
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType

ONE = Guid(b"\x01" * 16)


@pytest.mark.parametrize(
    ("propid", "value", "vt"),
    [
        (PropId.Q_LABEL, "orders", VarType.LPWSTR),
        (PropId.Q_QUOTA, 7, VarType.UI4),
        (PropId.Q_BASEPRIORITY, -3, VarType.I2),
        (PropId.Q_SCOPE, 1, VarType.UI1),
        (PropId.QM_SITE_IDS, (ONE,), VarType.VECTOR_CLSID),
        (PropId.QM_SITE_ID, ONE, VarType.CLSID),
        (PropId.QM_SECURITY, b"\x01", VarType.BLOB),
        (108, "orders", VarType.LPWSTR),
    ],
)
def test_a_value_has_the_type_of_its_property(propid: int, value: object, vt: VarType) -> None:
    expected = PropVariant(vt, value)  # type: ignore[arg-type]
    assert prop(propid, value) == expected  # type: ignore[arg-type]
    assert pair(propid, value) == (propid, expected)  # type: ignore[arg-type]


def test_several_properties_at_once() -> None:
    kept = PropVariant(VarType.UI1, 9)  # not the type of a label: it is kept all the same
    assert props({PropId.Q_QUOTA: 7, PropId.Q_LABEL: kept}) == {
        PropId.Q_QUOTA: PropVariant(VarType.UI4, 7),
        PropId.Q_LABEL: kept,
    }


@pytest.mark.parametrize("value", [7, None, b"orders", ("orders",)])
def test_a_value_of_another_type_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="VT_LPWSTR: wants text"):
        prop(PropId.Q_LABEL, value)  # type: ignore[arg-type]


def test_an_unknown_property_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no property 4711"):
        prop(4711, 1)
