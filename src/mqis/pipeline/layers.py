"""Tables that are made file by file: the rows of input files that are as they were stay.

A table such as ``records`` has the rows of many input files. Each run adds a *layer* to it: Parquet
files with the rows of the input files that are new or were written since, named after the layer:

    tables/.records/v000007/server=psc1/000001-part-....parquet     read by the first run
    tables/.records/v000007/server=psc1/000012-part-....parquet     what is new since
    tables/.records/v000007/_made.json                              the input files of each layer

A new version of the table has links to the Parquet files of layers that are as they were, so it is
whole by itself, and cost what is new. Where the file system has no links, they are copies. Of a
layer of which some input files were written or are gone, the other rows are copied from its Parquet
files, and no input file is read again for them. To files that are open, such as the last segment of
a journal, more is added all the time: they get a layer of their own.

Layers that are not larger than all smaller ones together are made one, so there are never more than
the logarithm of the number of runs, and a row is copied as often.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mqis.files import write_whole

_RECORD = "_made.json"
_SUCCESS = "_SUCCESS"
#: The column by whose values a draft is divided; it is none of the table.
_LAYER = "_layer"
_CHECKSUM = ".crc"

#: The input files of a layer, each with the text that tells whether it is as it was.
InputFiles = dict[str, str]


@dataclass(frozen=True, slots=True)
class MadeOf:
    """What a version of a table was made of; it stands beside the rows."""

    #: The digest of all that the rows depend on: inputs and code. Empty if that is not known.
    digest: str = ""
    #: The digest of the code that made the layers.
    code: str = ""
    layers: dict[str, InputFiles] = field(default_factory=dict)

    @classmethod
    def read(cls, version: Path) -> MadeOf:
        """Reads it; what cannot be read tells nothing, so that the table is made anew."""
        try:
            told = json.loads((version / _RECORD).read_text("utf-8"))
            layers = dict(told["layers"].items())
            made = cls(str(told["digest"]), str(told["code"]), layers)
            sound = all(n.isdecimal() and isinstance(f, dict) for n, f in made.layers.items())
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return cls()
        return made if sound else cls()

    def write(self, version: Path) -> None:
        told = {"digest": self.digest, "code": self.code, "layers": self.layers}
        write_whole(version / _RECORD, json.dumps(told, separators=(",", ":")))


@dataclass(frozen=True, slots=True)
class InputFile:
    """An input file as it is now."""

    stamp: str
    #: True if more is added to it.
    open: bool = False


@dataclass(frozen=True, slots=True)
class LayerPlan:
    """What becomes of the layers of a table, and what has to be read."""

    #: The layers that stay as they are.
    kept: dict[str, InputFiles]
    #: The layers that make way; of each, the input files whose rows are copied.
    copied: dict[str, InputFiles]
    #: The input files that are read.
    read: frozenset[str]
    #: Those of the input files with copied or read rows to which more is added.
    open: frozenset[str]
    #: The rows of these files are left out of the copies.
    gone: frozenset[str]
    #: The layers that the new rows get, closed files and open ones.
    closed_layer: str
    open_layer: str
    #: What the new layers have.
    added: dict[str, InputFiles]

    @property
    def layers(self) -> dict[str, InputFiles]:
        """The layers of the new version."""
        return self.kept | self.added

    @classmethod
    def of(
        cls,
        layers: Mapping[str, InputFiles],
        present: Mapping[str, InputFile],
        sizes: Mapping[str, int],
    ) -> LayerPlan:
        """Plans a new version; ``sizes`` are those of the layers in bytes."""
        good = {
            layer: {name: stamp for name, stamp in files.items() if _is(present, name, stamp)}
            for layer, files in layers.items()
        }
        whole = [layer for layer, files in layers.items() if good[layer] == files]
        merged = merging({layer: sizes.get(layer, 0) for layer in whole})
        kept = {layer: layers[layer] for layer in whole if layer not in merged}
        copied = {layer: good[layer] for layer in layers if layer not in kept}
        known = {name for files in good.values() for name in files}
        read = frozenset(present.keys() - known)
        rewritten = {*read, *(name for files in copied.values() for name in files)}
        opened = frozenset(name for name in rewritten if present[name].open)
        gone = frozenset(n for layer in copied for n in layers[layer].keys() - copied[layer].keys())
        last = max(map(int, layers), default=0)
        names = f"{last + 1:06}", f"{last + 2:06}"
        parts = rewritten - opened, opened
        added = {
            layer: {name: present[name].stamp for name in sorted(part)}
            for layer, part in zip(names, parts, strict=True)
            if part
        }
        sources = {layer: files for layer, files in copied.items() if files}
        return cls(kept, sources, read, opened, gone, *names, added)


def _is(present: Mapping[str, InputFile], name: str, stamp: str) -> bool:
    return name in present and present[name].stamp == stamp


def merging(sizes: Mapping[str, int]) -> frozenset[str]:
    """The layers that become one: those up to one that is not larger than all smaller ones."""
    in_order = sorted(sizes, key=lambda layer: (sizes[layer], layer))
    smaller, count = 0, 0
    for at, layer in enumerate(in_order):
        if at and sizes[layer] <= smaller:
            count = at + 1
        smaller += sizes[layer]
    return frozenset(in_order[:count])


# --- files ----------------------------------------------------------------------------------------


def layer_sizes(version: Path) -> dict[str, int]:
    """The bytes of each layer of a version."""
    sizes: dict[str, int] = {}
    for path in version.rglob("*.parquet"):
        layer = _layer_of(path)
        sizes[layer] = sizes.get(layer, 0) + path.stat().st_size
    return sizes


def _layer_of(path: Path) -> str:
    """The layer of a file; its checksum has the same name behind a dot."""
    return path.name.lstrip(".").partition("-")[0]


def copied_rows(
    session: SparkSession, version: Path, plan: LayerPlan, by: Sequence[str]
) -> DataFrame | None:
    """The rows of layers that make way, without those of input files that are not as they were.

    The rows of several layers are put into few files.
    """
    if not plan.copied or not _has_rows(version, plan.copied):
        return None
    names = ",".join(plan.copied)
    reader = session.read.option("pathGlobFilter", f"{{{names}}}-*.parquet")
    rows = reader.parquet(str(version))
    if plan.gone:
        listed = session.createDataFrame([(name,) for name in sorted(plan.gone)], "file string")
        rows = rows.join(F.broadcast(listed), "file", "left_anti")
    return rows.hint("rebalance", *by) if len(plan.copied) > 1 else rows


def _has_rows(version: Path, layers: Iterable[str]) -> bool:
    """Returns whether a layer has files: one without rows has none."""
    return not layer_sizes(version).keys().isdisjoint(layers)


def write_layers(
    frame: DataFrame, plan: LayerPlan, by: Sequence[str], before: Path | None, target: Path
) -> None:
    """Writes a version: new rows, and links to the files of ``before`` that stay."""
    draft = target.with_name(f"{target.name}.draft")
    try:
        in_layers = _in_layers(frame, plan)
        in_layers.write.mode("error").partitionBy(_LAYER, *by).parquet(str(draft))
        target.mkdir(parents=True)
        for path in _data_files(draft):
            layer, *within = path.relative_to(draft).parts[:-1]
            _put(path, target.joinpath(*within), layer.partition("=")[2])
        if before is not None:
            _link_layers(before, target, plan.kept)
        if not any(target.rglob("*.parquet")):
            _write_columns(frame, draft, target)
        (target / _SUCCESS).touch()
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _in_layers(frame: DataFrame, plan: LayerPlan) -> DataFrame:
    """Adds the layer of each row."""
    closed, opened = F.lit(plan.closed_layer), F.lit(plan.open_layer)
    if len(plan.added) < 2:
        return frame.withColumn(_LAYER, opened if plan.open else closed)
    files = frame.sparkSession.createDataFrame([(n,) for n in sorted(plan.open)], "file string")
    marked = frame.join(F.broadcast(files.withColumn("is_open", F.lit(True))), "file", "left")
    layer = F.when(F.col("is_open"), opened).otherwise(closed)
    return marked.select(*frame.columns, layer.alias(_LAYER))


def _data_files(draft: Path) -> Iterator[Path]:
    yield from sorted(draft.rglob("part-*.parquet"))


def _put(path: Path, directory: Path, layer: str) -> None:
    """Moves a file, and its checksum, to where it stands in the version."""
    directory.mkdir(parents=True, exist_ok=True)
    name = f"{layer}-{path.name}"
    path.rename(directory / name)
    checksum = path.with_name(f".{path.name}{_CHECKSUM}")
    if checksum.exists():
        checksum.rename(directory / f".{name}{_CHECKSUM}")


def _link_layers(before: Path, target: Path, layers: Mapping[str, Any]) -> None:
    for path in sorted(before.rglob("*-part-*")):
        if _layer_of(path) in layers:
            place = target / path.relative_to(before)
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(path, place)
            except OSError:  # this file system has no such links
                shutil.copy2(path, place)


def _write_columns(frame: DataFrame, draft: Path, target: Path) -> None:
    """Writes a file without rows, so that readers find the columns."""
    empty = frame.sparkSession.createDataFrame([], frame.schema)
    empty.coalesce(1).write.mode("overwrite").parquet(str(draft))
    for path in _data_files(draft):
        _put(path, target, "000000")
