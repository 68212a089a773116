"""``mqis capture``: decodes the packets of capture files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from json import loads
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from mqis.cli.capture_input import STDIN, mapped_capture
from mqis.cli.options import JsonOption
from mqis.cli.output import (
    cell,
    console,
    error_console,
    plain,
    print_json,
    print_json_line,
    say,
    table,
)
from mqis.protocol.capture.conversations import Conversation, Summary
from mqis.protocol.capture.decoder import CaptureDecoder, CaptureFilter, Network, parse_network
from mqis.protocol.capture.registry import PROTOCOLS
from mqis.protocol.capture.row import DecodedRow
from mqis.texts import counted, host_port, iso_moment
from mqis.wire.errors import MqisError
from mqis.wire.pcap.capture_file import walk_capture
from mqis.wire.pcap.captured import Captured

_ENDINGS = ("*.pcap", "*.pcapng", "*.cap")
PATTERNS = (*_ENDINGS, *(f"{ending}.gz" for ending in _ENDINGS))
#: Packets between two steps of the progress bar.
_STEP = 2000
_COLUMNS = f"{'frame':>7}  {'time':26}  {'source':21}  {'destination':21}  {'protocol':9}  what"


def capture(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="pcap or pcapng files, also packed with gzip; - is stdin. A directory means all "
            "*.pcap, *.pcapng and *.cap in it, with or without .gz.",
            show_default=False,
        ),
    ],
    *,
    summary: Annotated[
        bool, typer.Option("--summary", "-s", help="Show conversations instead of single messages.")
    ] = False,
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            "--protocol",
            "-p",
            metavar="NAME",
            help=f"Only these: {', '.join(PROTOCOLS)}. May be repeated.",
            show_default=False,
        ),
    ] = None,
    address: Annotated[
        list[str] | None,
        typer.Option(
            "--address",
            "-a",
            metavar="ADDRESS",
            help="Only conversations of this address or network (10.0.0.0/8). May be repeated.",
            show_default=False,
        ),
    ] = None,
    errors: Annotated[
        bool,
        typer.Option("--errors", "-e", help="Only messages that are damaged or cannot be decoded."),
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Include conversations of unknown protocols.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Decode captured traffic: discovery, sessions, replication, RPC, OleTx.

    With --json, each line is one JSON object; with --summary too, the output is one document.
    """
    choice, networks = _choice(protocol or [], errors), _networks(address or [])
    paths = _paths(files)
    # No progress bar where rows scroll by on the same terminal: they show progress well enough.
    found = _Found(choice, everything=everything, bar=summary or not console().is_terminal)
    if summary:
        _summarise(found, paths, networks, json=json)
        return
    if not json:
        say(_COLUMNS, "bold")
    show = _Lines(json=json)
    for path in paths:
        for row in found.rows(path, networks):
            show.row(row, path, name_file=len(paths) > 1)
    if not json:
        _say_left_out(found)


def _choice(protocols: list[str], errors: bool) -> CaptureFilter:
    try:
        return CaptureFilter(frozenset(name.lower() for name in protocols), errors_only=errors)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--protocol") from None


def _networks(addresses: list[str]) -> list[Network]:
    try:
        return [parse_network(text) for text in addresses]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--address") from None


def _paths(given: list[Path]) -> list[Path]:
    found: list[Path] = []
    for place in given:
        if place == STDIN:
            found.append(place)
        elif place.is_dir():
            below = sorted(path for pattern in PATTERNS for path in place.rglob(pattern))
            below = [path for path in below if _is_plain(place, path)]
            if not below:
                raise MqisError(
                    f"{place}: this directory holds no capture files ({', '.join(_ENDINGS)}), "
                    "packed with gzip or not"
                )
            found += below
        elif place.exists():
            found.append(place)
        else:
            raise MqisError(f"{place}: no such file or directory")
    return found


def _is_plain(place: Path, path: Path) -> bool:
    """True if ``path`` is a file inside the directory: no link that leads out, no pipe."""
    return path.is_file() and path.resolve().is_relative_to(place.resolve())


# --- reading --------------------------------------------------------------------------------------


class _Found:
    """Yields the rows that the options select, and counts the unrecognised ones left out."""

    def __init__(self, choice: CaptureFilter, *, everything: bool, bar: bool) -> None:
        self._choice = choice
        self._bar = bar
        #: ``--protocol tcp`` and ``udp`` select conversations of unknown protocols.
        self._everything = everything or not choice.protocols.isdisjoint(("tcp", "udp"))
        self.unrecognised = 0
        self.packets = 0

    def rows(self, path: Path, networks: list[Network]) -> Iterator[DecodedRow]:
        decoder = CaptureDecoder(networks=networks)
        with mapped_capture(path) as data, _progress(path, len(data), shown=self._bar) as advance:
            for each in walk_capture(data):
                decoder.receive(each)
                if isinstance(each, Captured):
                    self.packets += 1
                    if not self.packets % _STEP:
                        advance(each.offset)
                yield from self._wanted(decoder.take())
            decoder.finish()
            yield from self._wanted(decoder.take())

    def _wanted(self, rows: list[DecodedRow]) -> Iterator[DecodedRow]:
        for row in rows:
            if row.kind == "unrecognised" and not self._everything:
                self.unrecognised += 1
            elif self._choice.wants(row):
                yield row


@contextmanager
def _progress(path: Path, size: int, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """Shows a progress bar on a terminal; yields the function that moves it."""
    target = error_console()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    is_off = not (shown and target.is_terminal)
    with Progress(*columns, console=target, transient=True, disable=is_off) as bar:
        task = bar.add_task(plain(path.name), total=size)

        def advance(offset: int) -> None:
            bar.update(task, completed=offset)

        yield advance


# --- showing --------------------------------------------------------------------------------------


class _Lines:
    """Prints rows one by one as they are decoded: a capture may have millions."""

    def __init__(self, *, json: bool) -> None:
        self._json = json
        self._console = console()

    def row(self, row: DecodedRow, path: Path, *, name_file: bool) -> None:
        if self._json:
            print_json_line(as_json(row, path))
            return
        line = plain(_line(row))
        if name_file:
            line = f"{plain(path.name)} {line}"
        if self._console.is_terminal:
            self._console.print(cell(line, "red" if row.error else ""), soft_wrap=True)
        else:
            print(line)


def _line(row: DecodedRow) -> str:
    what = " ".join(filter(None, (row.kind, row.summary)))
    if row.error is not None:
        what = f"{what}: {row.error}" if row.carrier else f"at offset {row.offset}: {row.error}"
    ends = (
        _endpoint(row.source, row.source_port),
        _endpoint(row.destination, row.destination_port),
    )
    return (
        f"{row.frame or '':>7}  {_time(row.time_ns):26}  {ends[0]:21}  {ends[1]:21}  "
        f"{row.protocol:9}  {what}"
    )


def _endpoint(address: str, port: int) -> str:
    return host_port(address, port) if address else ""


def _time(time_ns: int | None) -> str:
    if time_ns is None:
        return ""
    return iso_moment(time_ns // 1000)[:-1]


def as_json(row: DecodedRow, path: Path) -> dict[str, object]:
    return {
        "file": str(path),
        "frame": row.frame or None,
        "offset": row.offset,
        "time": f"{_time(row.time_ns)}Z" if row.time_ns is not None else None,
        "time_ns": row.time_ns,
        "source": _endpoint(row.source, row.source_port) or None,
        "destination": _endpoint(row.destination, row.destination_port) or None,
        "to_server": row.to_server,
        "transport": row.transport or None,
        "carrier": row.carrier or None,
        "protocol": row.protocol or None,
        "kind": row.kind,
        "stream": row.stream or None,
        "call_id": row.call_id,
        "length": row.length,
        "summary": row.summary,
        "detail": loads(row.detail) if row.detail else None,
        "partition": None if row.partition is None else str(row.partition),
        "seq": row.seq,
        "queue_manager": None if row.queue_manager is None else str(row.queue_manager),
        "machines": list(row.machines),
        "error": row.error,
    }


def _summarise(found: _Found, paths: list[Path], networks: list[Network], *, json: bool) -> None:
    """Prints one summary per file, because streams are numbered by file."""
    documents = []
    for path in paths:
        made = Summary()
        for row in found.rows(path, networks):
            made.add(row)
        documents.append(_summary_json(made, path))
        if not json:
            if len(paths) > 1:
                say(str(path), "bold")
            _say_summary(made)
    if json:
        print_json(documents)
    else:
        _say_left_out(found)


def _summary_json(made: Summary, path: Path) -> dict[str, object]:
    return {
        "file": str(path),
        "conversations": [_conversation_json(each) for each in made.conversations()],
        "damage": [{"offset": row.offset, "reason": row.error} for row in made.damage],
    }


def _conversation_json(each: Conversation) -> dict[str, object]:
    return {
        "client": each.client,
        "server": each.server,
        "port": each.port,
        "transport": each.transport,
        "carrier": each.carrier,
        "protocol": each.protocol,
        "streams": len(each.streams),
        "messages": each.messages,
        "bytes": each.bytes,
        "errors": each.errors,
        "first": f"{_time(each.first_ns)}Z" if each.first_ns is not None else None,
        "last": f"{_time(each.last_ns)}Z" if each.last_ns is not None else None,
    }


def _say_summary(made: Summary) -> None:
    names = ("client", "server", "port", "protocol", "streams", "messages", "bytes", "errors")
    shown = table(*names, "first", "last")
    for each in made.conversations():
        via = "" if each.carrier == each.protocol else f" in {each.carrier}"
        texts = (
            each.client,
            each.server,
            f"{each.port}/{each.transport}",
            each.protocol + via,
            *map(str, (len(each.streams), each.messages, each.bytes, each.errors)),
            _time(each.first_ns),
            _time(each.last_ns),
        )
        shown.add_row(*map(cell, texts))
    console().print(shown)
    for row in made.damage:
        say(f"at offset {row.offset}: {row.error}", "red")


def _say_left_out(found: _Found) -> None:
    if found.unrecognised:
        others = counted(found.unrecognised, "other conversation")
        say(f"{counted(found.packets, 'packet')}; {others} of unknown protocols: --all shows them")
