"""The current directory, its faults (hygiene), and what the exports cannot show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline import schemas
from mqis.pipeline.graph.facts import Facts, facts, judged
from mqis.pipeline.registry import step, table
from mqis.pipeline.transforms import hygiene as rules
from mqis.pipeline.transforms.current import OBJECT_COLUMNS, object_from
from mqis.pipeline.transforms.expressions import gathered, guid_text, shaped, type_label
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.hygiene.knowledge import Knowledge, PartitionCopy, absent_sites
from mqis.protocol.hygiene.topology import topology_findings, untold_gates
from mqis.protocol.routing.snapshot import Snapshot
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType


@table(schemas.CURRENT, requires="objects")
def directory(held_objects: DataFrame) -> DataFrame:
    texts = {"partition": guid_text("partition"), "id": guid_text("id")}
    readable = shaped(held_objects, schemas.CURRENT.names, type=type_label("type"), **texts)
    return gathered(readable)


def object_facts(routing_objects: DataFrame, **more: DataFrame) -> DataFrame:
    """Objects as facts, from which ``routing_objects_of`` makes them again."""
    return facts(objects=routing_objects.select(*OBJECT_COLUMNS), **more)


def _known(routing_objects: DataFrame, copies: DataFrame, **more: DataFrame) -> DataFrame:
    listed = copies.select("partition", "owner", "own", "whole", "last_seq")
    return object_facts(routing_objects, copies=listed, **more)


def routing_objects_of(known: Facts) -> list[DirectoryObject]:
    return [object_from(*(row[name] for name in OBJECT_COLUMNS)) for row in known["objects"]]


def _knowledge(known: Facts) -> Knowledge:
    parts = {Guid(row["partition"]): row for row in known["copies"]}
    filled = {id_ for id_, row in parts.items() if row["last_seq"]}
    sites = (obj for obj in routing_objects_of(known) if obj.type is ObjectType.SITE)
    listed = (PartitionCopy(i, r["owner"] or "", r["own"], r["whole"]) for i, r in parts.items())
    return Knowledge(tuple(listed), absent_sites(sites, filled))


def _topology(known: Facts) -> Iterator[dict[str, Any]]:
    snapshot = Snapshot.of(routing_objects_of(known))
    for found in topology_findings(snapshot, _knowledge(known)):
        yield rules.hygiene_row(found)


def _uncertain(known: Facts) -> Iterator[dict[str, Any]]:
    return ({"check": check} for check in sorted(_knowledge(known).uncertain()))


def _limits(known: Facts) -> Iterator[dict[str, Any]]:
    left_out = {row["check"]: row["count"] for row in known["left_out"]}
    knowledge = _knowledge(known)
    gates = untold_gates(Snapshot.of(routing_objects_of(known)), knowledge)
    for limit in knowledge.limits(left_out, gates):
        yield asdict(limit) | {"check": limit.check or None}


@step
def hygiene_findings(
    held_objects: DataFrame, routing_objects: DataFrame, copies: DataFrame
) -> DataFrame:
    """The findings of all rules, those included that missing exports may explain."""
    topology = judged(_known(routing_objects, copies), _topology, schemas.HYGIENE)
    return rules.judged(held_objects).unionByName(topology)


@step
def uncertain_checks(routing_objects: DataFrame, copies: DataFrame) -> DataFrame:
    """(check): the checks whose findings missing exports may explain."""
    return judged(_known(routing_objects, copies), _uncertain, schemas.UNCERTAIN)


@table(schemas.HYGIENE, requires="objects", order=("check", "type", "path", "id", "detail"))
def hygiene(hygiene_findings: DataFrame, uncertain_checks: DataFrame) -> DataFrame:
    certain = hygiene_findings.join(F.broadcast(uncertain_checks), "check", "left_anti")
    return gathered(certain)


@table(schemas.HYGIENE_LIMITS, requires="objects")
def hygiene_limits(
    hygiene_findings: DataFrame,
    uncertain_checks: DataFrame,
    routing_objects: DataFrame,
    copies: DataFrame,
) -> DataFrame:
    uncertain = hygiene_findings.join(F.broadcast(uncertain_checks), "check", "left_semi")
    known = _known(routing_objects, copies, left_out=uncertain.groupBy("check").count())
    return judged(known, _limits, schemas.HYGIENE_LIMITS)
