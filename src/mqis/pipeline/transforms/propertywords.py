"""Properties and their values in the words of ``mqis get``, as column expressions."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.transforms.expressions import lookup, word
from mqis.protocol.directory.machine_services import ServiceBits
from mqis.protocol.directory.types.catalogue import ROWS
from mqis.protocol.directory.types.property_words import NUMBER_WORDS, property_word
from mqis.protocol.directory.types.row_columns import UNLIMITED, ValueMeaning

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
        value = F.coalesce(held["text"], _number(held["propid"], held["number"]), _bytes(size))
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
            .otherwise(F.coalesce(_number(propid, value.try_cast("long")), value))
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


def _number(propid: Column, number: Column) -> Column:
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
