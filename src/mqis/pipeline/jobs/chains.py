"""Judges the chains of all journals with the keys in the exports."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.evidence.chains import JournalChain
from mqis.pipeline.evidence.extents import JournalInventory
from mqis.pipeline.evidence.keys import ExportedKeys, keys_by_server
from mqis.pipeline.sources.files import parent_of, source_file
from mqis.pipeline.sources.inventory import JournalFiles
from mqis.pipeline.tables import TableDirectory
from mqis.wire.mqds.keys import RsaPublicKey
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

_NUMBERED = re.compile(r"segment-([0-9]{1,18})\.mqj")


def judge_chains(
    tables: TableDirectory,
    journals: Collection[JournalInventory],
    files: JournalFiles,
    damaged: Collection[str],
    unused: Collection[str],
) -> None:
    """Adds to each journal the state of its signature, and what was changed or removed.

    ``damaged`` are the files with unreadable records, ``unused`` the exports that do not count.
    """
    keys = _keys(tables, {journal.server_id for journal in journals}, unused)
    unreadable = _unreadable(damaged, files)
    for journal in journals:
        key = journal.server, journal.server_id
        copies = [c for c in files.repeated if (c.segment.server, c.segment.server_id.raw) == key]
        places = {parent_of(segment.path) for segment in journal.segments}
        numbers = {number for place in places for number in unreadable[place]}
        chain = JournalChain(journal.server, journal.segments, copies, damaged, numbers)
        known = keys.get(journal.server_id, ())
        journal.signature = chain.signature(known)
        journal.missing += chain.findings(known)


def _unreadable(damaged: Iterable[str], files: JournalFiles) -> defaultdict[str, set[int]]:
    """By directory: the numbers, in their names, of segments whose headers cannot be read."""
    readable = {segment.path for segment in files.segments}
    found: defaultdict[str, set[int]] = defaultdict(set)
    for path in map(source_file, set(damaged) - readable):
        if match := _NUMBERED.fullmatch(path.name):
            found[str(path.parent)].add(int(match[1]))
    return found


def _keys(
    tables: TableDirectory, ids: Collection[bytes], unused: Collection[str]
) -> dict[bytes, tuple[RsaPublicKey, ...]]:
    """The keys that exports have of servers with these identifiers."""
    if not tables.has("objects") or not ids:
        return {}
    used = tables.read("objects").filter("error is null and not deleted")
    used = used.filter(~F.col("file").isin(sorted(unused))) if unused else used
    names: dict[bytes, str] = {}
    exported: list[ExportedKeys] = []
    for row in _listed_keys(used, ids).collect():
        if row["id"] is not None:
            names[bytes(row["id"])] = row["name"]
        if row["keys"]:
            exported.append(ExportedKeys(row["name"], row["keys"], row["first"], row["last"]))
    keys = keys_by_server(exported)
    return {id_: keys.get(name, ()) for id_, name in names.items()}


def _listed_keys(objects: DataFrame, ids: Iterable[bytes]) -> DataFrame:
    """(id, name, keys, first, last): keys of machines and, without id, of sites' PSCs."""
    machine = F.col("type") == int(ObjectType.MACHINE)
    wanted = F.hex("id").isin(sorted(id_.hex().upper() for id_ in ids))
    chosen = objects.filter((machine & wanted) | (F.col("type") == int(ObjectType.SITE)))
    name = F.when(machine, F.col("path")).otherwise(_value(PropId.S_PSC))
    keys = F.when(machine, _value(PropId.QM_SIGN_PKS)).otherwise(_value(PropId.S_PSC_SIGNPK))
    listed = chosen.select(
        F.when(machine, F.col("id")).alias("id"),
        F.lower(name).alias("name"),
        keys.alias("keys"),
        F.lower("server").alias("server"),
    )
    return (
        listed.filter("name is not null")
        .groupBy("id", "name", "keys")
        .agg(F.min("server").alias("first"), F.max("server").alias("last"))
    )


def _value(propid: PropId) -> Column:
    return F.get_json_object("props", f"$['{int(propid)}'].value")
