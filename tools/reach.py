"""Lists what ships although nothing that ships refers to it: code that only tests reach.

Usage: python -m tools.reach [--all]

Starts at what is public on purpose (the commands, ``mqis.client``, ``mqis.testing``, the Spark
sources, the templates of the console, what a page of docs/ or an example imports) and follows every
reference from there. A definition that is not met is unreachable, also if others mention it that
are unreachable themselves.

What a class is reached for: its special methods, what overrides a method of another package (such
as asyncio's and Spark's protocols), what overrides a reached method, and what fulfils a reached
method of a Protocol. An attribute of a value without a known type reaches every member of that
name. Fields and members of enumerations are not judged: the wire numbers them.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from jinja2 import Environment, nodes

from mqis.cli.registry import COMMANDS
from tools.references import (
    ANNOTATED,
    ANY_OF,
    PASSED,
    UNKNOWN,
    Definition,
    References,
    read_references,
)

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src"
CACHE = ROOT / ".build" / "reach"

_PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_IMPORT = re.compile(r"^from (mqis[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
_NAME = re.compile(r"\w+")

#: What ships although nothing in mqis refers to it, each with the reason. A class or a module
#: stands for its public members too.
ALLOWED: dict[str, str] = {
    # called by other programs
    "mqis.__main__": "python -m mqis",
    "mqis.pipeline.declarative": "spark-pipelines loads it by the file's name (docs/pipeline.md)",
    "mqis.server.monitoring.metrics.exposition.ServerCollector.describe": (
        "prometheus-client looks for it when the collector is registered"
    ),
    "mqis.runtime.authentication.ntlm_clock._Asking.complete": (
        "the RPC client asks it: _Asking stands for a SecurityContext that ends at once"
    ),
    "mqis.runtime.authentication.ntlm_clock._Asking.identity": "as _Asking.complete",
    # called through Any
    "mqis.sim.network.Post": "a simulated server takes it for its queue manager, as Any",
    # offered to programs by a page
    "mqis.protocol.cmpo.partner_security.is_machine": (
        "docs/oletx.md: a handler asks it for its caller"
    ),
    "mqis.protocol.routing.bulk.allpairs.routes_from": "docs/routing.md: tables for programs",
    "mqis.protocol.routing.bulk.gates.Gates.of": "docs/routing.md: WhatIf with gates",
    "mqis.wire.ndr.scalars": "docs/rpc.md: every type of IDL",
    # read by tools that write documents
    "mqis.config.checks.accepted_by": "tools/configuration_doc.py",
    "mqis.server.monitoring.metrics.all_metrics.Metric.exported": "tools/metrics_doc.py",
    # the state of a machine, which only its tests and the soak tools look at
    "mqis.places.remote.forget_systems": "tests change the environment of one process",
    "mqis.protocol.ldap.ldap_client.LdapClient.buffered": "tests of the limit of unread answers",
    "mqis.protocol.multiplexer.multiplexer.Multiplexer.incoming": (
        "tests of the Incoming Connection Table (MS-CMP 3.1.1.1)"
    ),
    "mqis.runtime.activedirectory.connection.ForestConnection.outage": "tests of reconnecting",
    "mqis.runtime.directory.handles.HandleTable.count": "tests and soaks of leaked handles",
    "mqis.runtime.directory.walks.LookupWalks.waiting": "tests of lookups that wait",
    "mqis.runtime.oletx.partner_binding.PartnerBinding.authenticated": (
        "tests of the security level"
    ),
    "mqis.runtime.queueing.queueing_endpoint.QueueingEndpoint.next_event": (
        "tests of a queue manager without a node"
    ),
    "mqis.storage.journal.appender.copy": "tests of journals without a thread",
    "mqis.storage.journal.checking.JournalCheck.notices": "tests of findings that are no faults",
}


@dataclass(frozen=True, slots=True)
class Reach:
    """The judgement of one package."""

    unreachable: Mapping[str, Definition]
    #: Entries of the list of allowed names that are reached anyway, or do not exist.
    needless: tuple[str, ...]
    resolved: int
    #: Attributes whose owner is unknown, as ``module:line name``.
    unresolved: tuple[str, ...]

    @property
    def outermost(self) -> dict[str, Definition]:
        """The unreachable definitions that stand in no other."""
        return {n: d for n, d in self.unreachable.items() if _outer(n) not in self.unreachable}


def judge(found: References, roots: Iterable[str], allowed: Iterable[str] = ()) -> Reach:
    """Compares what a package defines with what can be reached from its roots."""
    defined = {n: d for module in found.modules.values() for n, d in module.definitions.items()}
    meant = {name: {name, *_public_members(found, name)} & defined.keys() for name in allowed}
    plain = _Search(found, roots).run()
    reached = _Search(found, [*roots, *chain.from_iterable(meant.values())]).run()
    return Reach(
        {name: one for name, one in defined.items() if name not in reached},
        tuple(name for name, members in meant.items() if members <= plain),
        sum(module.resolved for module in found.modules.values()),
        tuple(
            f"{name}:{line} {attribute}"
            for name, module in found.modules.items()
            for attribute, line in module.unresolved
        ),
    )


@dataclass(slots=True)
class _Search:
    """Follows references until nothing new is met."""

    found: References
    roots: Iterable[str]
    reached: set[str] = field(default_factory=set)
    pending: list[str] = field(default_factory=list)
    #: Reached classes by each of their ancestors and protocols.
    heirs: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    by_name: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    unknown: set[str] = field(default_factory=set)

    def run(self) -> set[str]:
        references: dict[str, list[str]] = defaultdict(list)
        modules: dict[str, str] = {}
        for one in self.found.modules.values():
            modules |= {name: found.module for name, found in one.definitions.items()}
            for name, targets in one.references.items():  # a function may have a module's name
                references[name] += targets
        modules = {
            n: d.module for m in self.found.modules.values() for n, d in m.definitions.items()
        }
        for root in self.roots:
            self._follow(root)
        while self.pending:
            name = self.pending.pop()
            if name in self.found.classes:
                self._enter_class(name)
            if name in self.found.modules:
                self._reach(f"{name}.__getattr__")
            owner, _, member = name.rpartition(".")
            if owner in self.found.classes:
                self._reach(owner)
                for heir in self.heirs[owner]:
                    self._member(heir, member)
            self._reach(owner if name in self.found.modules else modules.get(name, ""))
            for target in references.get(name, ()):
                self._follow(target)
        return self.reached

    def _follow(self, target: str) -> None:
        if target.startswith(UNKNOWN):
            name = target.removeprefix(UNKNOWN)
            self.unknown.add(name)
            for owner in list(self.by_name[name]):
                self._reach(f"{owner}.{name}")
        elif target.startswith(PASSED):
            self._pass(target.removeprefix(PASSED))
        elif target.startswith(ANY_OF):
            name = target.removeprefix(ANY_OF)
            facts = self.found.classes.get(name)
            for ancestor in () if facts is None else facts.ancestors:
                for member in self.found.classes[ancestor].members:
                    self._reach(f"{ancestor}.{member}")
        elif target.startswith(ANNOTATED):
            name = target.removeprefix(ANNOTATED)
            facts = self.found.classes.get(name)
            if facts is None or facts.described:
                self._reach(name)
        else:
            self._reach(target)

    def _reach(self, name: str) -> None:
        if name and name not in self.reached:
            self.reached.add(name)
            self.pending.append(name)

    def _pass(self, module: str) -> None:
        """Lets the members of a module be met by their bare name."""
        self._reach(module)
        for name in self.found.modules[module].definitions if module in self.found.modules else ():
            owner, _, member = name.rpartition(".")
            if owner == module:
                self.by_name[member].add(module)
                if member in self.unknown:
                    self._reach(name)

    def _enter_class(self, name: str) -> None:
        facts = self.found.classes[name]
        for member in facts.members:
            self.by_name[member].add(name)
            if _is_special(member) or member in facts.overriding or member in self.unknown:
                self._reach(f"{name}.{member}")
        for other in (*facts.ancestors, *facts.protocols):
            if other == name:
                continue
            self.heirs[other].add(name)
            for member in self.found.classes[other].members:
                if f"{other}.{member}" in self.reached:
                    self._member(name, member)

    def _member(self, heir: str, member: str) -> None:
        """Reaches what a class has under a name, itself or from an ancestor."""
        for ancestor in self.found.classes[heir].ancestors:
            if member in self.found.classes[ancestor].members:
                self._reach(f"{ancestor}.{member}")
                return


def _public_members(found: References, name: str) -> Iterator[str]:
    """What a class or a module offers to those who have it."""
    if name in found.classes:
        for ancestor in found.classes[name].ancestors:
            members = found.classes[ancestor].members
            yield from (f"{ancestor}.{member}" for member in members if _is_public(member))
    if name in found.modules:
        for defined in found.modules[name].definitions:
            if _is_public(defined.removeprefix(name)):
                yield defined


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _outer(name: str) -> str:
    return name.rpartition(".<locals>.")[0] or name.rpartition(".")[0]


# --- the roots of mqis ----------------------------------------------------------------------------


def public_names(found: References, sources: Path = SOURCES) -> list[str]:
    """The names that others use: programs, Spark, shells and templates."""
    public: list[str] = []
    for module, one in found.modules.items():
        if module.startswith("mqis.testing"):
            public += [name for name in one.definitions if _is_public(name)]
        if module == "mqis.client" or module.startswith("pyspark_"):
            public += [module, *(n for name, n in one.imported.items() if _is_public(name))]
    public += _documented(found)
    public += [member for name in tuple(public) for member in _public_members(found, name)]
    return ["mqis.cli.entry.main", *_commands(found), *_names_in_templates(sources), *public]


def _is_public(name: str) -> bool:
    return not any(part.startswith(("_", "<")) for part in name.split("."))


def _commands(found: References) -> Iterator[str]:
    for command in COMMANDS.values():
        module = found.modules[command.module]
        for name in command.attributes:
            yield module.imported.get(name, f"{command.module}.{name}")


def _documented(found: References) -> Iterator[str]:
    """What the Python of a page, or of an example, imports."""
    pages = [path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("docs/**/*.md"))]
    blocks = [block for page in pages for block in _PYTHON.findall(page)]
    examples = [path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("examples/**/*.py"))]
    for text in (*blocks, *examples):
        for module, names in _IMPORT.findall(text):
            for name in _NAME.findall(names):
                imported = found.modules[module].imported if module in found.modules else {}
                yield imported.get(name, f"{module}.{name}")


def _names_in_templates(sources: Path) -> set[str]:
    """Attributes that templates read: they have no types, so that their names count."""
    found = set()
    for path in sources.rglob("*.html"):
        tree = Environment(autoescape=True).parse(path.read_text(encoding="utf-8"))
        found |= {node.attr for node in tree.find_all(nodes.Getattr)}
        found |= {node.name for node in tree.find_all((nodes.Filter, nodes.Test))}
    return {UNKNOWN + name for name in found}


def reach_of_mqis() -> Reach:
    found = read_references(SOURCES, CACHE, ROOT / "pyproject.toml")
    return judge(found, public_names(found), ALLOWED)


def main() -> int:
    """Prints what is unreachable."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="list the attributes without a type too")
    options = parser.parse_args()
    result = reach_of_mqis()
    for name, one in sorted(result.outermost.items(), key=lambda item: item[0]):
        print(f"{one.kind:16} {one.lines:5}  {name}  (line {one.line})")
    for name in result.needless:
        print(f"needless in the list of allowed names: {name}")
    lines = sum(one.lines for one in result.outermost.values())
    print(f"unreachable: {len(result.outermost)} definitions, {lines} lines")
    print(f"attributes: {result.resolved} resolved, {len(result.unresolved)} by their name only")
    if options.all:
        print("\n".join(result.unresolved))
    return bool(result.unreachable or result.needless)


if __name__ == "__main__":
    sys.exit(main())
