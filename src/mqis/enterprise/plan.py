"""The enterprise file: the plan of ``mqis up``, as TOML.

Reading, checking and the commented example all follow from the dataclasses here. Errors name the
file and the key, an entry of a list by its number: ``link[2].cost``.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from mqis.config.checks import about, as_flag, as_ipv4, as_port, as_text, between, one_of
from mqis.config.errors import ConfigError
from mqis.config.file import override, refuse_unknown
from mqis.config.sections import Config
from mqis.files import system_reason
from mqis.protocol.directory.objects import name_key
from mqis.protocol.queueing.replication_queue import queue_path

#: The enterprise file that commands read by default.
DEFAULT_NAME = "enterprise.toml"
_MAX_COST = 999_999


class ServerRole(StrEnum):
    PEC = "pec"
    PSC = "psc"
    BSC = "bsc"


def _name(value: object) -> str:
    """Checks the name of a site, a network or an account."""
    text = as_text(value)
    if not text or not text.isprintable() or "\\" in text:
        raise ValueError(f"{text!r} is not a name: use visible characters, and no backslash")
    return text


def _machine(value: object) -> str:
    text = as_text(value)
    queue_path(text)  # raises ValueError for a text that is not a machine name
    return text


def _queue(value: object) -> str:
    text = as_text(value)
    machine, backslash, name = text.partition("\\")
    if not backslash or not machine or not name:
        raise ValueError(f"{text!r} is not a path: write 'MACHINE\\QUEUE'")
    return text


def _two_sites(value: object) -> tuple[str, str]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f'must be two sites, ["A", "B"], not {value!r}')
    first, second = (_name(item) for item in value)
    return first, second


def _optional_ipv4(value: object) -> str:
    return "" if value == "" else as_ipv4(value)


@dataclass(frozen=True, slots=True)
class EnterprisePlan:
    """The enterprise as a whole."""

    name: str = field(metadata=about(_name, "Its name."))
    network: str = field(
        default="IP",
        metadata=about(_name, "The connected network that all servers are on, for discovery."),
    )


@dataclass(frozen=True, slots=True)
class SitePlan:
    """A site: machines with good connections to each other."""

    name: str = field(metadata=about(_name, "Its name."))


@dataclass(frozen=True, slots=True)
class LinkPlan:
    """A routing link between two sites."""

    sites: tuple[str, str] = field(metadata=about(_two_sites, "The two sites that it connects."))
    cost: int = field(
        default=1, metadata=about(between(1, _MAX_COST), "Messages take the cheapest route.")
    )
    description: str = field(default="", metadata=about(as_text, "A description."))


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """A directory server, which is a process."""

    name: str = field(metadata=about(_machine, "The name of its machine."))
    site: str = field(metadata=about(_name, "Its site."))
    role: ServerRole = field(
        metadata=about(
            one_of(ServerRole),
            "pec: primary enterprise controller, one of them; psc: primary site controller, one "
            "in each other site; bsc: a backup, any number.",
        )
    )
    routing: bool = field(
        default=False,
        metadata=about(as_flag, "True if it forwards messages of other machines, and is a gate."),
    )
    rpc_port: int = field(default=0, metadata=about(as_port, "Its RPC port. 0: a free one."))
    mapper_port: int = field(
        default=0, metadata=about(as_port, "The port of its endpoint mapper. 0: a free one.")
    )
    queue_port: int = field(
        default=0, metadata=about(as_port, "Its port for messages. 0: a free one.")
    )
    discovery_port: int = field(
        default=0, metadata=about(as_port, "Its UDP port for discovery. 0: a free one.")
    )
    monitor_port: int = field(
        default=0, metadata=about(as_port, "Its port for monitoring. 0: a free one.")
    )


@dataclass(frozen=True, slots=True)
class MachinePlan:
    """A machine without a directory server; it is only an entry in the directory."""

    name: str = field(metadata=about(_machine, "Its name."))
    site: str = field(metadata=about(_name, "Its site."))
    address: str = field(default="", metadata=about(_optional_ipv4, "Its IPv4 address."))


@dataclass(frozen=True, slots=True)
class QueuePlan:
    """A public queue."""

    path: str = field(metadata=about(_queue, "MACHINE\\QUEUE."))
    label: str = field(default="", metadata=about(as_text, "Its label."))
    transactional: bool = field(
        default=False, metadata=about(as_flag, "Accept transactional messages only.")
    )
    journal: bool = field(
        default=False, metadata=about(as_flag, "Keep received messages in its journal.")
    )


@dataclass(frozen=True, slots=True)
class AccountPlan:
    """An account that may log on."""

    name: str = field(metadata=about(_name, "Its name."))
    domain: str = field(
        default="", metadata=about(as_text, "Its domain. Empty: the enterprise's name.")
    )
    administrator: bool = field(
        default=False, metadata=about(as_flag, "True for an administrator, who may do everything.")
    )
    password_file: str = field(
        default="",
        metadata=about(
            as_text,
            "The file with the password in its first line, relative to this one. Empty: a password "
            "is generated and written to passwords/NAME in the run directory.",
        ),
    )


#: [options.SECTION]: keys of every server's configuration.
Options = Mapping[str, Mapping[str, object]]

#: Keys of each server unless [options] sets them: with the short times of servers on one computer.
DEFAULT_OPTIONS: Options = {
    "security": {"machine_policy": "owner"},
    "replication": {
        "signing": "require",
        "journal": "journal",
        "notify": False,
        "heartbeat_s": 5,
        "retry_s": 2,
        "recovery_wait_s": 30,
        "connect_retry_s": 1,
    },
}
#: Keys that 'mqis up' sets itself, from the plan or from the assigned addresses.
_OURS: Mapping[str, frozenset[str]] = {
    "server": frozenset({"name", "role", "site"}),
    "enterprise": frozenset({"name"}),
    "store": frozenset({"url"}),
    "rpc": frozenset({"listen", "port", "mapper", "mapper_port"}),
    "security": frozenset({"accounts"}),
    "discovery": frozenset({"enabled", "listen", "port", "networks"}),
    "replication": frozenset({"listen", "port", "key", "pec", "psc", "id", "site_id", "seeds"}),
    "monitoring": frozenset({"enabled", "listen", "port"}),
}


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The whole enterprise file."""

    enterprise: EnterprisePlan
    sites: tuple[SitePlan, ...] = ()
    links: tuple[LinkPlan, ...] = ()
    servers: tuple[ServerPlan, ...] = ()
    machines: tuple[MachinePlan, ...] = ()
    queues: tuple[QueuePlan, ...] = ()
    accounts: tuple[AccountPlan, ...] = ()
    options: Options = field(default_factory=dict)
    #: Entries of objects that are wrong, each in words: they stop no other one.
    left_out: tuple[str, ...] = ()

    @property
    def pec(self) -> ServerPlan:
        return next(s for s in self.servers if s.role is ServerRole.PEC)

    @property
    def administrator(self) -> AccountPlan:
        """The account with which the enterprise is set up."""
        return next(a for a in self.accounts if a.administrator)

    def domain_of(self, account: AccountPlan) -> str:
        return account.domain or self.enterprise.name.upper()


#: Key of the file -> field of ``RunPlan``, and the type of one entry.
LISTS: dict[str, tuple[str, type[Any]]] = {
    "site": ("sites", SitePlan),
    "link": ("links", LinkPlan),
    "server": ("servers", ServerPlan),
    "machine": ("machines", MachinePlan),
    "queue": ("queues", QueuePlan),
    "account": ("accounts", AccountPlan),
}


class EntryKind(StrEnum):
    """The kinds of entries, in the order in which they are made; each needs those before it."""

    OPTIONS = "options"
    ACCOUNT = "account"
    SITE = "site"
    SERVER = "server"
    MACHINE = "machine"
    QUEUE = "queue"
    LINK = "link"


#: The ports of a server: keys of its entry, and fields of ``NodePlace``.
PORTS = ("rpc_port", "mapper_port", "queue_port", "discovery_port", "monitor_port")
#: The attributes that two files, or a file and a directory, are compared by.
_COMPARED: Mapping[EntryKind, tuple[str, ...]] = {
    EntryKind.ACCOUNT: ("administrator",),
    EntryKind.SITE: (),
    EntryKind.SERVER: ("site", "role", "routing", *PORTS),
    EntryKind.MACHINE: ("site", "address"),
    EntryKind.QUEUE: ("label", "transactional", "journal"),
    EntryKind.LINK: ("cost", "description"),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the file, as it is compared and shown."""

    kind: EntryKind
    key: str
    name: str
    attributes: Mapping[str, object]

    @property
    def summary(self) -> str:
        """The attributes that are set, for people."""
        told = []
        for key, value in self.attributes.items():
            if value is True and key != "value":
                told.append(key)
            elif value not in ("", False) or key == "value":
                told.append(f"{key} {value}")
        return ", ".join(told)


def entries_of(plan: RunPlan, kind: EntryKind) -> dict[str, Entry]:
    """The entries of one kind by their keys, in the order of the file."""
    if kind is EntryKind.OPTIONS:
        options = plan.options.items()
        values = {f"{section}.{key}": v for section, keys in options for key, v in keys.items()}
        return {key: Entry(kind, key, key, {"value": value}) for key, value in values.items()}
    found = (entry_of(plan, kind, item) for item in items_of(plan, kind))
    return {entry.key: entry for entry in found}


def items_of(plan: RunPlan, kind: EntryKind) -> tuple[Any, ...]:
    items: tuple[Any, ...] = getattr(plan, LISTS[kind.value][0])
    return items


def entry_of(plan: RunPlan, kind: EntryKind, item: Any) -> Entry:
    name = _entry_name(plan, item)
    values = {key: getattr(item, key) for key in _COMPARED[kind]}
    if isinstance(item, ServerPlan):  # a port that is not set is assigned
        values = {k: v for k, v in values.items() if k not in PORTS or v}
    key = link_key(item.sites) if isinstance(item, LinkPlan) else name_key(name)
    return Entry(kind, key, name, values)


def _entry_name(plan: RunPlan, item: Any) -> str:
    if isinstance(item, LinkPlan):
        return " - ".join(item.sites)
    if isinstance(item, AccountPlan):
        return f"{plan.domain_of(item)}\\{item.name}"
    return str(item.path if isinstance(item, QueuePlan) else item.name)


def link_key(sites: Iterable[str]) -> str:
    """A link is known by its two sites, in any order."""
    return " - ".join(sorted(map(name_key, sites)))


def load_plan(path: Path) -> RunPlan:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        reason = system_reason(error)
        raise ConfigError(
            f"{path}: cannot be read: {reason}; 'mqis up --example > {path}' writes one"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: this file is not valid TOML: {error}") from error
    return check_plan(content, str(path))


class PlanEntryError(ConfigError):
    """One entry of a list is wrong; an object's entry is left out."""

    def __init__(self, source: str, key: str, number: int, problem: str) -> None:
        super().__init__(f"{source}: {key}[{number}]{problem}")
        self.key, self.number, self.problem = key, number, problem


#: Lists of objects, of which one that is wrong stops no other: each is only in the directory.
_OBJECTS = (EntryKind.MACHINE, EntryKind.QUEUE, EntryKind.LINK)


def check_plan(content: dict[str, Any], source: str) -> RunPlan:
    """Leaves out the entries of objects that are wrong, and notes them in the plan."""
    left_out: list[str] = []
    lists = {key: content.get(key) for key in _OBJECTS}
    numbers = {k: list(range(1, len(v) + 1)) for k, v in lists.items() if isinstance(v, list)}
    while True:
        try:
            return replace(parse_plan(content, source), left_out=tuple(left_out))
        except PlanEntryError as error:
            if error.key not in numbers:
                raise
            number = numbers[EntryKind(error.key)].pop(error.number - 1)
            left_out.append(f"{error.key}[{number}]{error.problem}")
            entries = content[error.key]
            content = {**content, error.key: entries[: error.number - 1] + entries[error.number :]}


def parse_plan(
    content: dict[str, Any], source: str = DEFAULT_NAME, *, consistent: bool = True
) -> RunPlan:
    """Checks parsed TOML and returns the plan; raises ``ConfigError`` with the key.

    Unless ``consistent``, only each entry is checked, and not whether they fit together.
    """
    refuse_unknown(content, ["enterprise", *LISTS, "options"], source, "")
    if "enterprise" not in content:
        raise ConfigError(
            f"{source}: enterprise: this section is missing; write [enterprise] with a name"
        )
    values: dict[str, Any] = {
        "enterprise": _entry(EnterprisePlan, content["enterprise"], source, "enterprise"),
        "options": _options(content.get("options", {}), source),
    }
    for key, (name, kind) in LISTS.items():
        values[name] = _entries(kind, content.get(key, []), source, key)
    if not values["accounts"]:
        values["accounts"] = (AccountPlan("admin", administrator=True),)
    plan = RunPlan(**values)
    for where, problem in _problems(plan) if consistent else ():
        entry = _ENTRY.fullmatch(where)
        if entry is not None:
            raise PlanEntryError(source, entry[1], int(entry[2]), f"{entry[3]}: {problem}")
        raise ConfigError(f"{source}: {where}: {problem}")
    return plan


_ENTRY = re.compile(r"(\w+)\[(\d+)\](.*)")


def _entries(kind: type[Any], content: object, source: str, key: str) -> tuple[Any, ...]:
    if not isinstance(content, list):
        raise ConfigError(f"{source}: {key}: this is a list of tables; write [[{key}]]")
    found = []
    for number, item in enumerate(content, 1):
        where = f"{key}[{number}]"
        try:
            found.append(_entry(kind, item, source, where))
        except ConfigError as error:
            problem = str(error).removeprefix(f"{source}: {where}")
            raise PlanEntryError(source, key, number, problem) from None
    return tuple(found)


def _entry(kind: type[Any], content: object, source: str, where: str) -> Any:
    if not isinstance(content, dict):
        raise ConfigError(f"{source}: {where}: this is a table; write [{where.partition('[')[0]}]")
    keys = {key.name: key for key in fields(kind)}
    refuse_unknown(content, list(keys), source, f"{where}.")
    values = {}
    for name, key in keys.items():
        if name not in content:
            if key.default is MISSING:
                raise ConfigError(f"{source}: {where}.{name}: this key is missing")
            continue
        try:
            values[name] = key.metadata["check"](content[name])
        except ValueError as error:
            raise ConfigError(f"{source}: {where}.{name}: {error}") from None
    return kind(**values)


def _options(content: object, source: str) -> Options:
    """Checks the options as configuration keys, so that errors show before anything starts."""
    if not isinstance(content, dict) or not all(isinstance(v, dict) for v in content.values()):
        raise ConfigError(
            f"{source}: options: this consists of sections; write [options.replication] and so on"
        )
    sections = [section.name for section in fields(Config) if section.name != "hosts"]
    refuse_unknown(content, sections, source, "options.")
    for section, keys in content.items():
        for key in keys:
            if key in _OURS.get(section, ()):
                raise ConfigError(
                    f"{source}: options.{section}.{key}: 'mqis up' sets this key for each server; "
                    "remove it"
                )
    try:
        override(Config(), content, source)
    except ConfigError as error:
        raise ConfigError(str(error).replace(f"{source}: ", f"{source}: options.", 1)) from None
    return {section: dict(keys) for section, keys in content.items()}


# --- consistency ----------------------------------------------------------------------------------


def _problems(plan: RunPlan) -> Iterable[tuple[str, str]]:
    """Yields each problem as key and text, most important first."""
    yield from _duplicates("site", [site.name for site in plan.sites])
    yield from _duplicates("server", [s.name for s in plan.servers])
    machines = [*(s.name for s in plan.servers), *(m.name for m in plan.machines)]
    yield from _duplicates("machine", machines, before=len(plan.servers))
    yield from _duplicates("queue", [queue.path for queue in plan.queues], "path")
    yield from _duplicates("account", [f"{plan.domain_of(a)}\\{a.name}" for a in plan.accounts])
    yield from _roles(plan)
    known = {name_key(site.name) for site in plan.sites}
    yield from _sites_exist("server", [(s.site,) for s in plan.servers], "site", known)
    yield from _sites_exist("machine", [(m.site,) for m in plan.machines], "site", known)
    yield from _sites_exist("link", [link.sites for link in plan.links], "sites", known)
    yield from _links(plan)
    hosts = {name_key(machine) for machine in machines}
    for number, queue in enumerate(plan.queues, 1):
        machine = queue.path.partition("\\")[0]
        if name_key(machine) not in hosts:
            yield f"queue[{number}].path", f"there is no server or machine {machine!r}"
    if not any(account.administrator for account in plan.accounts):
        yield "account", "one account has to be an administrator, to set up the enterprise"


def _duplicates(
    key: str, names: list[str], part: str = "name", before: int = 0
) -> Iterable[tuple[str, str]]:
    """``before``: the number of names that are no entries of this list."""
    seen = Counter[str]()
    for number, name in enumerate(names, 1 - before):
        seen[name_key(name)] += 1
        if seen[name_key(name)] > 1 and number > 0:
            yield (
                f"{key}[{number}].{part}",
                f"{name!r} is there already; case does not matter in names",
            )


def _roles(plan: RunPlan) -> Iterable[tuple[str, str]]:
    pecs = [s.name for s in plan.servers if s.role is ServerRole.PEC]
    if len(pecs) != 1:
        names = ", ".join(pecs) or "none"
        yield "server", f'exactly one server must have the role "pec", here: {names}'
    for number, site in enumerate(plan.sites, 1):
        key = name_key(site.name)
        own = [s for s in plan.servers if name_key(s.site) == key]
        authorities = [s.name for s in own if s.role is not ServerRole.BSC]
        if len(authorities) != 1:
            names = ", ".join(authorities) or "none"
            yield (
                f"site[{number}]",
                f"{site.name} needs exactly one server with the role pec or psc, has: {names}",
            )


def _sites_exist(
    key: str, sites_of: list[tuple[str, ...]], part: str, known: set[str]
) -> Iterable[tuple[str, str]]:
    for number, sites in enumerate(sites_of, 1):
        for site in sites:
            if name_key(site) not in known:
                yield f"{key}[{number}].{part}", f"there is no site {site!r}"


def _links(plan: RunPlan) -> Iterable[tuple[str, str]]:
    seen: set[frozenset[str]] = set()
    for number, link in enumerate(plan.links, 1):
        ends = frozenset(map(name_key, link.sites))
        if len(ends) == 1:
            yield f"link[{number}].sites", "a link must connect two different sites"
        if ends in seen:
            yield f"link[{number}].sites", "these two sites are linked already"
        seen.add(ends)
