"""Writes docs/configuration.md from the configuration's sections: every key, as the code has it.

python tools/configuration_doc.py            writes it
python tools/configuration_doc.py --check    exits with 1 if it is out of date
"""

from __future__ import annotations

import sys
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from mqis.config.checks import accepted_by
from mqis.config.file import as_toml
from mqis.config.sections import Config, HostsSection

#: A longer row of a table is hard to read (``tests/docs/test_tables.py``).
LONGEST_ROW = 200
DOCUMENT = Path(__file__).parents[1] / "docs" / "configuration.md"

_HEAD = """# Configuration

<!-- Made by tools/configuration_doc.py from src/mqis/config/sections.py; do not edit. -->

One TOML file, `mqis.toml`, says what a server is. `mqis init` writes it with every key explained,
`mqis join` fills in what a member of an enterprise has to know, and `mqis doctor` looks whether it
can work. Commands read it from `--config`, `$MQIS_CONFIG` or `./mqis.toml`. A section or a key that
is left out has its default; one that is not known is an error. Names of files are relative to the
file itself.

*live*: a server that runs rereads the key at SIGHUP; all others want a restart.
"""


def document() -> str:
    parts = [_HEAD]
    for section in fields(Config):
        kind: Any = type(section.default)
        parts.append(f"\n## [{section.name}]\n\n{_sentence(kind.__doc__ or '')}\n")
        if kind is HostsSection:
            parts.append(f"\nIts keys are names of machines: {_about(fields(kind)[0])} *live*\n")
            continue
        parts.append("\n| key | default | values | |\n|---|---|---|---|\n")
        parts += [_row(key) for key in fields(kind)]
        if long := [key for key in fields(kind) if _is_long(key)]:
            parts += ["\n", *(f"- `{key.name}`: {_about(key)}\n" for key in long)]
    return "".join(parts)


def _row(key: Field[Any]) -> str:
    return _whole_row(key, "see below" if _is_long(key) else _about(key))


def _is_long(key: Field[Any]) -> bool:
    """Returns whether the explanation is a paragraph, which stands below the table."""
    return len(_whole_row(key, _about(key))) > LONGEST_ROW


def _whole_row(key: Field[Any], about: str) -> str:
    live = " *live*" if key.metadata["live"] else ""
    wants = accepted_by(key.metadata["check"])
    return f"| `{key.name}` | `{as_toml(key.default)}` | {wants} | {about}{live} |\n"


def _about(key: Field[Any]) -> str:
    text: str = key.metadata["explanation"]
    return text.replace("|", "\\|").replace("<", "&lt;")


def _sentence(text: str) -> str:
    return " ".join(text.split())


def main() -> int:
    made = document()
    if "--check" in sys.argv[1:]:
        if DOCUMENT.exists() and DOCUMENT.read_text("utf-8") == made:
            return 0
        print(f"{DOCUMENT} is out of date: run python {Path(__file__).name}", file=sys.stderr)
        return 1
    DOCUMENT.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
