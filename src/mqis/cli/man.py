"""``mqis man``: writes the manual pages, from the same texts as ``--help``."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any, Final

import typer

from mqis import __version__
from mqis.cli.options import JsonOption
from mqis.cli.output import print_json, say
from mqis.cli.parameters import choices
from mqis.cli.registry import COMMAND_GROUPS, COMMANDS
from mqis.files import system_reason, write_whole
from mqis.protocol.errors import StorageError
from mqis.texts import counted, day


def man(
    directory: Annotated[
        Path,
        typer.Argument(
            help="The directory to write into; ~/.local/share/man/man1 is where man finds them.",
            show_default=False,
        ),
    ],
    *,
    json: JsonOption = False,
) -> None:
    """Write the manual pages: mqis.1, and one page for each command, such as mqis-get.1."""
    from mqis.cli.main import app  # noqa: PLC0415 -- main imports the commands

    written = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in pages(typer.main.get_command(app)):
            write_whole(directory / name, text, 0o644)
            written.append(name)
    except OSError as error:
        raise StorageError(f"{directory}: cannot be written: {system_reason(error)}") from error
    if json:
        print_json({"directory": str(directory), "pages": written})
    else:
        say(f"wrote {counted(len(written), 'page')} into {directory}; 'man -l {directory}/mqis.1'")


# --- The manual pages of the commands, in the man macros of roff ----------------------------------

_STATUS: Final = (
    ("0", "Success."),
    ("1", "An error, or something that the command looks for was found. One line says what."),
    ("2", "A wrong command line."),
    ("130", "Interrupted by Ctrl-C."),
)
_SPACE: Final = re.compile(r"\s+")


def pages(root: Any) -> Iterator[tuple[str, str]]:
    """Yields the name and the text of each page."""
    yield "mqis.1", _top_page(root)
    for name in COMMANDS:
        yield from _pages_of(root.get_command(None, name), ("mqis", name), COMMANDS[name].summary)


def _pages_of(command: Any, words: tuple[str, ...], summary: str) -> Iterator[tuple[str, str]]:
    yield f"{'-'.join(words)}.1", _page(command, words, summary)
    for name in _subcommands(command):
        below = command.get_command(None, name)
        yield from _pages_of(below, (*words, name), _first_sentence(below.help))


# --- one page -------------------------------------------------------------------------------------


def _top_page(root: Any) -> str:
    lines = [*_title(("mqis",)), *_name(("mqis",), _sentence(root.help))]
    lines += [".SH SYNOPSIS", ".B mqis", ".I COMMAND", "[\\fIARGUMENT\\fR ...]"]
    lines += [".SH DESCRIPTION", *_paragraphs(root.help)]
    for title, group in COMMAND_GROUPS.items():
        lines.append(f".SS {escaped(title)}")
        for name, (_, summary) in group.items():
            lines += [".TP", f".BR {escaped(f'mqis-{name}')} (1)", *_filled(f"{summary}.")]
    lines += _environment(("MQIS_TRACEBACK", "Show where an error comes from, for reports."))
    lines += _exit_status()
    return "\n".join(lines) + "\n"


def _page(command: Any, words: tuple[str, ...], summary: str) -> str:
    lines = [*_title(words), *_name(words, summary), *_synopsis(command, words)]
    lines += [".SH DESCRIPTION", *_paragraphs(command.help)]
    lines += _listed("COMMANDS", _commands(command, words))
    lines += _listed("ARGUMENTS", _parameters(command, "argument"))
    lines += _listed("OPTIONS", _parameters(command, "option"))
    lines += _exit_status()
    parent = "-".join(words[:-1])
    lines += [".SH SEE ALSO", f".BR {escaped(parent)} (1)"]
    return "\n".join(lines) + "\n"


def _title(words: tuple[str, ...]) -> list[str]:
    """The date is that of the build: of SOURCE_DATE_EPOCH, so that builds can be repeated."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    made = day(int(epoch) if epoch.isdigit() else time.time())
    name = escaped("-".join(words).upper())
    return [f'.TH "{name}" 1 "{made}" "mqis {escaped(__version__)}" "mqis manual"']


def _name(words: tuple[str, ...], summary: str) -> list[str]:
    text = summary[:1].lower() + summary[1:].rstrip(".")
    return [".SH NAME", f"{escaped('-'.join(words))} \\- {escaped(text)}"]


def _synopsis(command: Any, words: tuple[str, ...]) -> list[str]:
    parts = [f"\\fB{escaped(' '.join(words))}\\fR", "[\\fIOPTIONS\\fR]"]
    if _subcommands(command):
        parts.append("\\fICOMMAND\\fR ...")
    for argument in _of_kind(command, "argument"):
        name = escaped(_shown_name(argument))
        text = f"\\fI{name}\\fR" + (" ..." if argument.nargs == -1 and "..." not in name else "")
        is_bracketed = argument.required or name.startswith("[")
        parts.append(text if is_bracketed else f"[{text}]")
    return [".SH SYNOPSIS", " ".join(parts)]


def _exit_status() -> list[str]:
    return _listed("EXIT STATUS", [(f"\\fB{code}\\fR", text) for code, text in _STATUS])


def _environment(*variables: tuple[str, str]) -> list[str]:
    return _listed("ENVIRONMENT", [(f"\\fB{escaped(name)}\\fR", text) for name, text in variables])


def _listed(title: str, rows: list[tuple[str, str]]) -> list[str]:
    """A section of terms with their explanations; nothing if there is none."""
    if not rows:
        return []
    lines = [f".SH {title}"]
    for term, text in rows:
        lines += [".TP", term, *(_filled(text) or ["\\&"])]
    return lines


# --- commands and parameters ----------------------------------------------------------------------


def _subcommands(command: Any) -> list[str]:
    return list(command.list_commands(None)) if hasattr(command, "list_commands") else []


def _commands(command: Any, words: tuple[str, ...]) -> list[tuple[str, str]]:
    return [
        (
            f"\\fB{escaped(' '.join((*words, name)))}\\fR",
            _sentence(command.get_command(None, name).help),
        )
        for name in _subcommands(command)
    ]


def _of_kind(command: Any, kind: str) -> list[Any]:
    hidden = [p for p in command.params if getattr(p, "hidden", False)]
    return [p for p in command.params if p.param_type_name == kind and p not in hidden]


def _parameters(command: Any, kind: str) -> list[tuple[str, str]]:
    return [(_term(p), _explanation(p)) for p in _of_kind(command, kind)]


def _shown_name(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _term(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"\\fI{escaped(_shown_name(parameter))}\\fR"
    names = ", ".join(f"\\fB{escaped(name)}\\fR" for name in _names(parameter))
    return names if parameter.is_flag else f"{names} \\fI{escaped(_shown_name(parameter))}\\fR"


def _names(parameter: Any) -> list[str]:
    return [*sorted(parameter.opts, key=len), *parameter.secondary_opts]


def _explanation(parameter: Any) -> str:
    texts = [(parameter.help or "").strip()]
    if names := choices(parameter):
        texts.append(f"One of {', '.join(names)}.")
    if parameter.show_default and parameter.default not in (None, False, True, (), []):
        texts.append(f"Default: {getattr(parameter.default, 'value', parameter.default)}.")
    if parameter.envvar:
        texts.append(f"Environment variable: {parameter.envvar}.")
    return " ".join(filter(None, texts))


# --- texts ----------------------------------------------------------------------------------------


def _paragraphs(text: str | None) -> list[str]:
    parts = [part for part in re.split(r"\n\s*\n", (text or "").strip()) if part]
    lines: list[str] = []
    for part in parts:
        lines += [".PP", *_filled(part)]
    return lines[1:]


def _filled(text: str) -> list[str]:
    """The text in lines of moderate length, each of which is escaped for itself."""
    return [
        escaped(line)
        for line in wrap(_SPACE.sub(" ", text), 60, break_long_words=False, break_on_hyphens=False)
    ]


def _sentence(text: str | None) -> str:
    """The first paragraph of a help."""
    return _SPACE.sub(" ", (text or "").strip().split("\n\n")[0]).strip()


def _first_sentence(text: str | None) -> str:
    return _sentence(text).split(". ")[0]


def escaped(text: str) -> str:
    """Writes a text so that roff takes nothing in it for a request."""
    safe = text.replace("\\", "\\e").replace("-", "\\-").replace("~", "\\(ti").replace("^", "\\(ha")
    safe = safe.replace("`", "\\(ga").replace("\n", " ").replace("'", "\\(aq")
    return f"\\&{safe}" if safe.startswith((".", "'")) else safe
