"""The options that several commands share, and the store that they select."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, Any, get_type_hints

import typer

from mqis.config import nodes
from mqis.config.claims import claimed_store
from mqis.config.errors import ConfigError
from mqis.config.file import DEFAULT_NAME, load
from mqis.config.sections import Config
from mqis.config.stores import file_of, holds_password, open_store
from mqis.files import system_reason
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Store
from mqis.wire.mqds.objecttype import ObjectType


def refuse_password(store: str | None) -> str | None:
    """Refuses a store URL with a password: everybody on the computer can read command lines."""
    try:
        secret = store is not None and holds_password(store)
    except ValueError:  # not a store's URL: opening it reports that
        secret = False
    if secret:
        raise ConfigError(
            "--store: a password on the command line is shown to everybody on this computer; "
            "leave it out of the URL and put it into ~/.pgpass (or the file that PGPASSFILE "
            "names), or write the URL as store.url into a configuration of mode 0600. Choose "
            "another password: this one has been seen"
        )
    return store


def refuse_passwords(stores: list[str] | None) -> list[str] | None:
    """Applies ``refuse_password`` to an option that may be given several times."""
    for store in stores or ():
        refuse_password(store)
    return stores


StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        "-s",
        metavar="STORE",
        help="PATH of an SQLite file, postgresql://..., or memory:. "
        "Default: the store of the configuration.",
        callback=refuse_password,
        show_default=False,
    ),
]
PermissionsOption = Annotated[
    bool,
    typer.Option(
        "--permissions/--no-permissions",
        help="Read the permissions of a server's objects too: one more call for each object.",
    ),
]
ListenOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="The address to listen at (rpc.listen), which the directory publishes.",
        show_default=False,
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        envvar="MQIS_CONFIG",
        help=f"The configuration. Default: ./{DEFAULT_NAME}",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON for programs.")]


class TypeName(StrEnum):
    """The types of objects, as the command line calls them."""

    QUEUE = ObjectType.QUEUE.label
    MACHINE = ObjectType.MACHINE.label
    SITE = ObjectType.SITE.label
    LINK = ObjectType.ROUTINGLINK.label
    NETWORK = ObjectType.CN.label
    USER = ObjectType.USER.label
    ENTERPRISE = ObjectType.ENTERPRISE.label

    @property
    def object_type(self) -> ObjectType:
        return ObjectType.parse(self.value)


NameArgument = Annotated[
    str, typer.Argument(metavar="PATH_OR_GUID", help="Its path name, or its GUID.")
]
TypeArgument = Annotated[
    TypeName, typer.Argument(metavar="TYPE", case_sensitive=False, show_default=False)
]


def configuration(config: Path | None, *, needed: bool = True) -> Config:
    """Reads the file that ``--config`` names, else the one in this directory.

    Returns the defaults if there is none and none is ``needed``.
    """
    path = Path(DEFAULT_NAME) if config is None else config
    if config is None and not path.exists():
        if not needed:
            return Config()
        raise ConfigError(
            f"no store is named: use --store, or name a configuration with --config or "
            f"MQIS_CONFIG; there is no {DEFAULT_NAME} here ('mqis init' writes one)"
        )
    return load(path)


def make_writable(directory: Path) -> None:
    """Makes the directory if it is missing; raises an error if no file can be written into it.

    A command that computes for long asks first, not when it has the result.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise StorageError(f"{directory}: cannot be written: {system_reason(error)}") from error


def store_url(store: str | None, config: Path | None) -> str:
    """The URL that ``--store`` gives, else the one of the configuration."""
    return configuration(config).store.url if store is None else store


@contextmanager
def claimed(url: str, *, create: bool = False) -> Iterator[Store]:
    """Opens the store for a command that writes to it: no server may use it meanwhile."""
    _check_url(url)
    with claimed_store(url, create=create) as store:
        yield store


def _check_url(url: str) -> None:
    try:
        file_of(url)
    except ValueError as error:
        raise ConfigError(str(error)) from None


@contextmanager
def opened(url: str, *, create: bool = False) -> Iterator[Store]:
    """Opens the store, and closes it when the block ends."""
    _check_url(url)
    store = open_store(url, create=create)
    try:
        yield store
    finally:
        store.close()


# --- Dataclasses of options that many commands share ----------------------------------------------


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Returns the command with each dataclass parameter replaced by one option per field.

        @dataclass(frozen=True)
        class Place:
            tables: TablesOption = Path("tables")
            master: MasterOption = "local[*]"

        @spread
        def audit(*, place: Place, json: JsonOption = False) -> None: ...

    is for typer a command with the options --tables, --master and --json.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type[Any]] = {}
    parameters: list[Parameter] = []
    plain = signature(command)
    for parameter in plain.parameters.values():
        hint = hints[parameter.name]
        if is_dataclass(hint) and isinstance(hint, type):
            groups[parameter.name] = hint
            parameters += _options(hint)
        else:
            parameters.append(parameter.replace(annotation=hint))

    @wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            chosen = {field.name: given.pop(field.name) for field in fields(group)}
            given[name] = group(**chosen)
        command(**given)

    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = plain.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


def _options(group: type[Any]) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(f.name, Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
        for f in fields(group)
    ]


# --- The options that commands about a whole enterprise share -------------------------------------

DEFAULT_RUN = Path(nodes.DEFAULT_RUN)

RunOption = Annotated[
    Path,
    typer.Option(
        "--run",
        metavar="DIRECTORY",
        envvar=nodes.RUN,
        readable=False,  # what cannot be read says so itself, in the same words everywhere
        help="The directory in which the enterprise keeps its files.",
    ),
]
#: For commands that also work without a run directory; ``run_here`` is its default.
OptionalRunOption = Annotated[
    Path | None,
    typer.Option(
        "--run",
        metavar="DIRECTORY",
        readable=False,
        help="The run directory of 'mqis up', with all its servers. Default, where nothing else "
        "is named and no mqis.toml is: $MQIS_RUN, else ./mqis-run.",
        show_default=False,
    ),
]
ServerArgument = Annotated[str, typer.Argument(metavar="SERVER", show_default=False)]


def run_here(*named: object) -> Path | None:
    """The run directory of a command line that names nothing; None where a server has its own
    configuration, or where there is no run directory."""
    run = nodes.default_run()
    if any(named) or Path(DEFAULT_NAME).exists() or not nodes.is_run(run):
        return None
    return run
