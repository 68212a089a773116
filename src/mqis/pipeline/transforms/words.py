"""Tables in words: names and texts in place of binary GUIDs, bare numbers and encoded values.

``in_words`` is a function from a frame to a frame. It goes by the names and types of columns, so a
new table is readable without a line here.
"""

from __future__ import annotations

from itertools import chain

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812 - the customary name

from mqis.pipeline.transforms.expressions import guid_text, lookup, type_label, word
from mqis.protocol.directory.machine_services import ServiceBits
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION
from mqis.protocol.directory.types.catalogue import ROWS
from mqis.protocol.directory.types.property_words import NUMBER_WORDS, property_word
from mqis.protocol.directory.types.row_columns import UNLIMITED, ValueMeaning
from mqis.wire.journal import RecordKind, RecordState
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqdsrp.change import Command
from mqis.wire.mqdsrp.describing import operation_name
from mqis.wire.mqdsrp.messages import MessageOperation

#: The name of the partition that every server replicates from the PEC.
ENTERPRISE = "enterprise"
#: Binary columns that hold GUIDs; other binary columns become hexadecimal digits.
_GUIDS = ("partition", "id", "object_id", "server_id", "message_source", "queue_manager")
#: Encoded content, of which only the length is shown.
_CONTENT = ("body", "header")
#: Columns that only the audit's comparison needs.
_DIGESTS = ("digest", "digests")
#: The column that holds the names of sites while a frame is translated.
_SITES = "names of sites"
#: The columns that identify an object, by the column of its name.
_OBJECTS = {"path": "id", "object": "object_id"}


def names_of(objects: DataFrame) -> DataFrame:
    """The names of all objects that some server holds: (named_id as text, name)."""
    held = objects.filter(F.col("path").isNotNull() & ~F.col("deleted"))
    return held.groupBy(guid_text("id").alias("named_id")).agg(F.max("path").alias("name"))


def with_names_of_changes(names: DataFrame, changes: DataFrame) -> DataFrame:
    """Adds the names that objects had when they were created: some of them are deleted since."""
    given = changes.filter("path is not null").groupBy(F.col("id").alias("named_id"))
    made = given.agg(F.max("path").alias("name"))
    return names.unionByName(made.join(names.select("named_id"), "named_id", "left_anti"))


def site_names_of(objects: DataFrame) -> DataFrame:
    """The same of sites, which are few; a partition has the name of its site."""
    return names_of(objects.filter(F.col("type") == int(ObjectType.SITE)))


def in_words(
    frame: DataFrame, sites: DataFrame | None = None, objects: DataFrame | None = None
) -> DataFrame:
    """Returns the frame with texts for everything that people cannot read.

    ``sites`` and ``objects`` are names from ``site_names_of`` and ``names_of``. With them,
    ``partition`` is the name of a site and ``partition_id`` its GUID, and objects have their path.
    """
    known = _with_site_map(frame, sites)
    readable = known.select(*chain.from_iterable(_texts(known, f) for f in frame.schema.fields))
    named = _with_paths(readable, objects)
    return _with_partitions(named, sites)


# --- single columns -------------------------------------------------------------------------------


def _texts(frame: DataFrame, field: T.StructField) -> list[Column]:
    """The columns that take the place of one."""
    name, column = field.name, F.col(field.name)
    if name in _CONTENT and isinstance(field.dataType, T.BinaryType):
        return [F.length(column).alias(f"{name}_bytes")]
    if name in _DIGESTS and not isinstance(field.dataType, T.BinaryType):
        return []
    if name == "props" and isinstance(field.dataType, T.StringType):
        sites = F.col(_SITES) if _SITES in frame.columns else None
        return [stored_values(column, sites).alias("properties")]
    if isinstance(field.dataType, T.BinaryType):
        return [_octets(name).alias(name)]
    if isinstance(field.dataType, T.IntegerType | T.LongType):
        return [_number(frame, name).alias(name)]
    return [_listed(field).alias(name)]


def _octets(name: str) -> Column:
    column = F.col(name)
    text = guid_text(column) if name in _GUIDS else F.lower(F.hex(column))
    return F.when(column.isNotNull(), text)


def _number(frame: DataFrame, name: str) -> Column:
    """The word for a code; other numbers stay."""
    column, types = F.col(name), dict(frame.dtypes)
    if types[name] != "int":
        return column
    if name in ("type", "object_type"):
        return F.when(column != 0, type_label(name))
    if name == "kind":
        return word(column, {int(kind): kind.name.lower() for kind in RecordKind})
    if name == "state":
        return word(column, {int(state): state.name.lower() for state in RecordState})
    if name == "operation" and types.get("kind") == "int":
        commands = {int(command): command.name.lower() for command in Command}
        messages = {int(o): operation_name(o).replace("_", " ") for o in MessageOperation}
        is_change = F.col("kind") == int(RecordKind.CHANGE)
        return F.when(is_change, word(column, commands)).otherwise(word(column, messages))
    return column


def _listed(field: T.StructField) -> Column:
    """Lists of properties become lists of their words, or maps from words to values."""
    column, kind = F.col(field.name), field.dataType
    if field.name != "properties" or not isinstance(kind, T.ArrayType):
        return column
    if isinstance(kind.elementType, T.IntegerType):
        return property_words(column)
    if isinstance(kind.elementType, T.StructType):
        return change_values(column)
    return column


def _with_site_map(frame: DataFrame, sites: DataFrame | None) -> DataFrame:
    """Adds the names of sites as a map, for the properties that refer to sites; sites are few."""
    if sites is None or "props" not in frame.columns:
        return frame
    entries = F.collect_list(F.struct("named_id", "name"))
    return frame.crossJoin(F.broadcast(sites.agg(F.map_from_entries(entries).alias(_SITES))))


# --- names ----------------------------------------------------------------------------------------


def _with_paths(frame: DataFrame, names: DataFrame | None) -> DataFrame:
    """Adds the name of the object that a row is about, or fills it in."""
    if names is None:
        return frame
    for name, key in _OBJECTS.items():
        if key in frame.columns:
            frame = _looked_up(frame, names, key, name)
    return frame


def _looked_up(frame: DataFrame, names: DataFrame, key: str, name: str) -> DataFrame:
    given = [column for column in frame.columns if column != name]
    found = F.coalesce(name, "found") if name in frame.columns else F.col("found")
    joined = frame.join(names.withColumnRenamed("name", "found"), _same(key), "left")
    at = given.index(key) + 1
    return joined.select(*given[:at], found.alias(name), *given[at:])


def _same(key: str) -> Column:
    return F.col(key) == F.col("named_id")


def _with_partitions(frame: DataFrame, names: DataFrame | None) -> DataFrame:
    if "partition" not in frame.columns or names is None:
        return frame
    joined = frame.join(F.broadcast(names), _same("partition"), "left")
    own = F.col("partition") == str(ENTERPRISE_PARTITION)
    name = F.when(own, F.lit(ENTERPRISE)).otherwise(F.coalesce("name", "partition"))
    columns: list[Column | str] = []
    for column in frame.columns:
        if column == "partition":
            columns += [name.alias("partition"), F.col("partition").alias("partition_id")]
        else:
            columns.append(column)
    return joined.select(*columns)


#: A property in the JSON of an export's line.
_STORED = "map<string,struct<vt:string,value:string>>"
_BINARY = ("VT_BLOB", "VT_UI1|VT_VECTOR")
_GUID, _LIST = "VT_CLSID", "|VT_VECTOR"
_TIME = "yyyy-MM-dd'T'HH:mm:ss'Z'"
#: Times have 32 bits; Spark fails on numbers that no time has.
_LAST_TIME = 0xFFFFFFFF
#: The words for numbers, by property and number.
_NUMBER_WORDS = {
    f"{int(propid)}:{number}": text
    for propid, known in NUMBER_WORDS.items()
    for number, text in known.items()
}


def property_words(numbers: Column) -> Column:
    """The words for a list of properties."""
    return F.transform(numbers, _property)


def change_values(properties: Column) -> Column:
    """The values of a change by the word for the property (``schemas.PROPERTY``)."""

    def entry(held: Column) -> Column:
        size = F.length(held["raw"])
        value = F.coalesce(
            held["text"], _number_propertywords(held["propid"], held["number"]), _bytes(size)
        )
        return F.struct(_property(held["propid"]).alias("key"), value.alias("value"))

    return F.map_from_entries(F.transform(properties, entry))


def stored_values(props: Column, sites: Column | None = None) -> Column:
    """The values of an exported object by the word for the property.

    ``sites`` is a map from identifiers to names; with it, sites have their names.
    """

    def entry(held: Column) -> Column:
        propid, kind = held["key"].try_cast("int"), held["value"]["vt"]
        value = held["value"]["value"]
        size = F.length(F.try_to_binary(value, F.lit("base64")))
        text = (
            F.when(kind.isin(*_BINARY), _bytes(size))
            .when(kind == _GUID, _named(value, sites))
            .when(kind.endswith(_LIST), _list(value, sites))
            .otherwise(F.coalesce(_number_propertywords(propid, value.try_cast("long")), value))
        )
        name = F.coalesce(_property(propid), held["key"])
        return F.struct(name.alias("key"), text.alias("value"))

    parsed = F.from_json(props, _STORED)
    return F.map_from_entries(F.transform(F.map_entries(parsed), entry))


def _named(identifier: Column, sites: Column | None) -> Column:
    return identifier if sites is None else F.coalesce(sites[identifier], identifier)


def _list(value: Column, sites: Column | None) -> Column:
    listed = F.from_json(value, "array<string>")
    return F.array_join(F.transform(listed, lambda one: _named(one, sites)), ", ")


def _property(number: Column) -> Column:
    return word(number, {int(propid): property_word(propid) for propid in ROWS})


def _bytes(size: Column) -> Column:
    return F.concat(size.cast("string"), F.lit(" bytes"))


def _number_propertywords(propid: Column, number: Column) -> Column:
    """The word for a number of a property; null if there is no number."""
    keyed = F.concat_ws(":", propid, number)
    seconds = F.date_format(F.timestamp_seconds(number), _TIME)
    return (
        F.when(_means(propid, ValueMeaning.TIME) & number.between(0, _LAST_TIME), seconds)
        .when(_means(propid, ValueMeaning.QUOTA) & (number == UNLIMITED), F.lit("unlimited"))
        .when(_means(propid, ValueMeaning.SERVICE), _services(number))
        .otherwise(F.coalesce(lookup(_NUMBER_WORDS)[keyed], number.cast("string")))
    )


def _means(propid: Column, meaning: ValueMeaning) -> Column:
    return propid.isin([int(row.id) for row in ROWS.values() if row.meaning is meaning])


def _services(number: Column) -> Column:
    bits = [
        F.when(number.bitwiseAND(int(bit)) != 0, F.lit(_service(bit.name or "")))
        for bit in ServiceBits
    ]
    text = F.concat_ws(", ", *bits)
    return F.when(number.isNotNull(), F.when(text == "", F.lit("none")).otherwise(text))


def _service(name: str) -> str:
    return name if len(name) == 3 else name.lower()
