"""The names of partitions in status, metrics and messages."""

from __future__ import annotations

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION
from mqis.protocol.ports import View
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType


def partition_name(view: View, partition: Guid) -> str:
    if partition == ENTERPRISE_PARTITION:
        return "enterprise"
    site = view.get(ObjectType.SITE, partition)
    return (None if site is None else site.path) or str(partition)
