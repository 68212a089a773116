"""Writes docs/properties.md: the properties of every object type, from the rows of the directory.

Usage: python tools/properties_doc.py [--check]

``--check`` writes nothing and exits with 1 if the page is out of date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from mqis.protocol.directory.types.catalogue import ROWS
from mqis.protocol.directory.types.property_row import PropertyRow
from mqis.protocol.directory.types.row_columns import Takes, ValueMeaning, WriteRule
from mqis.views.presentation.properties import friendly
from mqis.views.presentation.rendering import shown
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.propvariant import VarType

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "properties.md"

INTRODUCTION = """\
# Properties by type

`tools/properties_doc.py` writes this page from the rows in `mqis.protocol.directory.types`.

The word in the first column is the one that `mqis get` and `--json` print, and that `--prop`,
`--columns`, `--where`, `--sort`, `create`, `set` and the console take. The full name, its last part
(`pathname`) and the number work as well. `path`, `id`, `partition` and `seq` mean the same for
every type that has them.

```
$ mqis tour --store enterprise.db
$ mqis get queue 'ams-app1\\payments' -s enterprise.db --prop label
```

*Set* says when a client may supply the property: with a create, with a later change, or never. A
property that is accepted and ignored counts as never. *Right* says what it takes beside the right
to create or write the object ([security](security.md#properties-that-give-power-over-others)).
"""
_VALUES = {
    VarType.LPWSTR: "text",
    VarType.VECTOR_LPWSTR: "texts, separated by commas",
    VarType.CLSID: "identifier",
    VarType.VECTOR_CLSID: "identifiers, separated by commas",
    VarType.BLOB: "bytes: hexadecimal digits or @FILE",
    VarType.VECTOR_UI1: "bytes: hexadecimal digits or @FILE",
}
_MEANINGS = {
    ValueMeaning.FLAG: "yes or no",
    ValueMeaning.TIME: "time",
    ValueMeaning.QUOTA: "kilobytes or unlimited",
    ValueMeaning.SERVICE: "services, see `mqis get machine`",
    ValueMeaning.DESCRIPTOR: "permissions in SDDL",
    ValueMeaning.SID: "SID",
    ValueMeaning.KEYS: "public keys",
    ValueMeaning.CERTIFICATES: "certificates",
    ValueMeaning.ADDRESSES: "network addresses",
    ValueMeaning.SEQUENCE: "sequence number",
}
_RIGHTS = {
    Takes.NOTHING: "",
    Takes.ROLE: "of the role",
    Takes.SERVER: "of the server's role",
    Takes.PLACE: "to create at the new place",
    Takes.SITE: "SET_SITE_PROPERTIES",
    Takes.ENTERPRISE: "SET_ENTERPRISE_PROPERTIES",
    Takes.PERMISSIONS: "WRITE_DAC, WRITE_OWNER",
    Takes.SELF: "to be that user",
    Takes.NOBODY: "",
}


class _NoNames:
    """A directory without objects: defaults identify none."""

    def name_of(self, object_type: ObjectType, id: Guid) -> str | None:  # noqa: A002
        return None

    def id_of(self, object_type: ObjectType, name: str) -> Guid | None:
        return None


def page() -> str:
    return "\n".join([INTRODUCTION, *_sections()])


def _sections() -> Iterator[str]:
    for object_type in dict.fromkeys(row.object_type for row in ROWS.values()):
        if object_type is ObjectType.DELETEDOBJECT:
            continue  # no client asks for it
        yield f"## {object_type.label}\n"
        yield "| word | number | name | value | set | unless set | right |"
        yield "|---|---|---|---|---|---|---|"
        yield from (_line(row) for row in ROWS.values() if row.object_type is object_type)
        yield ""


def _line(row: PropertyRow) -> str:
    number, name = int(row.id), f"PROPID_{row.id.name}"
    cells = f"`{friendly(row.id)}`", str(number), name, _value(row), _set(row), _default(row)
    right = "" if _set(row) == "never" else _RIGHTS[row.takes]
    return f"| {' | '.join(cells)} | {right} |"


def _value(row: PropertyRow) -> str:
    if row.meaning is ValueMeaning.WORD:
        return ", ".join((row.words or {}).values())
    if row.refers_to is not None:
        several = row.vt is VarType.VECTOR_CLSID
        label = row.refers_to.label
        return f"{label}s, separated by commas" if several else label
    return _MEANINGS.get(row.meaning) or _VALUES.get(row.vt, "number")


def _set(row: PropertyRow) -> str:
    if row.takes is Takes.PERMISSIONS:
        return "`mqis security`"
    create, update = (rule is WriteRule.APPLY for rule in (row.create, row.update))
    if row.takes is Takes.NOBODY or not (create or update):
        return "never"
    if create and update:
        return "create (required), change" if row.required else "create, change"
    return ("create (required)" if row.required else "create") if create else "change"


def _default(row: PropertyRow) -> str:
    default = row.variant(row.default) or row.variant(row.unset)
    return shown(row.id, default, _NoNames()).replace("|", "\\|")


def main() -> int:
    made = page()
    if "--check" in sys.argv[1:]:
        if PAGE.read_text("utf-8") == made:
            return 0
        print("docs/properties.md: out of date, run tools/properties_doc.py")
        return 1
    PAGE.write_text(made, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
