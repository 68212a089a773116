"""docs/replication.md explains every key of its section."""

from __future__ import annotations

from dataclasses import fields

from mqis.config.replication import ReplicationSection
from tests.docs.documents import text_of

TEXT = text_of("replication.md")


def test_every_key_is_explained() -> None:
    for key in fields(ReplicationSection):
        assert f"`{key.name}`" in TEXT, key.name
