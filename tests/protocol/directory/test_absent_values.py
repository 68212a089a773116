"""Properties that an object does not have, or that a file has as something else."""

from __future__ import annotations

import json

import pytest

from mqis.protocol.directory.change_notification import (
    CREATED,
    ChangeNotice,
    Notice,
    notification_of,
)
from mqis.protocol.directory.export_format import ExportError, format_entry, parse_entry
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.types.catalogue import DEFAULTS
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.seqnum import SequenceNumber
from tests.builders import queue
from tests.protocol.directory.world import text


def test_a_notice_has_every_property_in_its_type_whatever_the_queue_lacks() -> None:
    """A queue manager reads all fifteen; what has no value is there as its default."""
    path = {int(PropId.Q_PATHNAME): text("c14\\bare")}
    bare = DirectoryObject(
        ObjectType.QUEUE, Guid(b"q" * 16), Guid(b"s" * 16), SequenceNumber(1), path
    )
    [update] = notification_of(ChangeNotice(Notice.QUEUE_CREATION, bare), Guid.NULL).updates
    values = dict(update.properties)
    assert tuple(values) == CREATED
    assert all(variant.vt is PROPERTIES[propid].vt for propid, variant in values.items())
    assert values[PropId.Q_PATHNAME].value == "c14\\bare"
    assert values[PropId.Q_LABEL].value == ""
    assert values[PropId.Q_TYPE].value == Guid.NULL
    assert values[PropId.Q_SECURITY].value == b""
    assert values[PropId.Q_CREATE_TIME].value == 0
    assert values[PropId.Q_QUOTA] == DEFAULTS[PropId.Q_QUOTA]


@pytest.mark.parametrize("value", [5, None, ["AP8="]])
def test_octets_in_a_file_are_text(value: object) -> None:
    content = json.loads(format_entry(queue()))
    content["props"][str(int(PropId.Q_SECURITY))]["value"] = value
    with pytest.raises(ExportError, match="wants base64 text, got"):
        parse_entry(json.dumps(content), 17)
