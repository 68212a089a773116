"""The difference between an enterprise file and an enterprise that exists.

Three things are compared: the file, the file as it was carried out last, and what is there. What
the file has changed since is a step to carry out. What commands have changed since (a promotion,
the cost of a link) is drift: it stays as it is, and 'mqis up --adopt' writes it into the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum

from mqis.enterprise.plan import Entry, EntryKind, RunPlan, ServerPlan, entries_of
from mqis.protocol.directory.objects import name_key

#: The value of each attribute of an entry, as the file would have it.
Attributes = Mapping[str, object]
#: What is there, by kind and by the key of an entry.
Present = Mapping[EntryKind, Mapping[str, "PresentEntry"]]


@dataclass(frozen=True, slots=True)
class PresentEntry:
    """An entry as it is: its name for people, and its attributes."""

    name: str
    attributes: Attributes


class Action(StrEnum):
    ADD = "add"
    CHANGE = "change"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Step:
    """A step to carry out; ``entry`` is that of the new file, or the removed one of the old."""

    action: Action
    kind: EntryKind
    name: str
    entry: Entry
    #: The attributes that change, with their values before; empty if the entry is new or removed.
    before: Attributes
    #: True if the entry was carried out once, and a command has deleted it since.
    deleted: bool = False

    @property
    def detail(self) -> str:
        if self.before:
            new = self.entry.attributes
            return ", ".join(
                f"{key} {_shown(old)} -> {_shown(new[key])}" for key, old in self.before.items()
            )
        if self.deleted:
            return "deleted since by a command; it is made again"
        return "" if self.action is Action.REMOVE else self.entry.summary


@dataclass(frozen=True, slots=True)
class Drift:
    """A difference that a command has made; it is left alone."""

    kind: EntryKind
    name: str
    #: The entry of the file; None if the file has none.
    entry: Entry | None
    #: The attributes that differ, as they are now; those of an entry that the file lacks: all.
    now: Attributes

    @property
    def adoptable(self) -> bool:
        """A site of the file needs a server of it, and an account its password."""
        return self.kind not in (EntryKind.SITE, EntryKind.ACCOUNT, EntryKind.OPTIONS)

    @property
    def detail(self) -> str:
        if self.entry is None:
            return "not in the file"
        known = self.entry.attributes
        return ", ".join(
            f"{key} is {_shown(value)}, in the file {_shown(known[key])}"
            for key, value in self.now.items()
        )


@dataclass(frozen=True, slots=True)
class PlanDifference:
    steps: tuple[Step, ...]
    #: Entries that the file had and has no more; only --remove takes them away.
    left: tuple[Step, ...]
    drift: tuple[Drift, ...]

    @property
    def needs_consent(self) -> bool:
        """Returns whether somebody is to be asked: new entries do no harm, but a key of every
        server's configuration may restart them all."""
        return any(
            step.action is not Action.ADD or step.deleted or step.kind is EntryKind.OPTIONS
            for step in self.steps
        )


def removed_servers(steps: Sequence[Step]) -> frozenset[str]:
    """The names of the servers that these steps take away."""
    return frozenset(
        step.name
        for step in steps
        if step.kind is EntryKind.SERVER and step.action is Action.REMOVE
    )


def removed_sites(difference: PlanDifference) -> list[str]:
    """The names of the sites that are to be deleted."""
    steps = (step for step in difference.steps if step.action is Action.REMOVE)
    return [step.name for step in steps if step.kind is EntryKind.SITE]


def leaving_sites(plan: RunPlan, steps: Sequence[Step]) -> frozenset[str]:
    """The keys of the sites that go with these steps, and of those that went before them."""
    gone = [step for step in steps if step.action is Action.REMOVE]
    sites = {name_key(step.name) for step in gone if step.kind is EntryKind.SITE}
    servers = (step for step in gone if step.kind is EntryKind.SERVER)
    sites |= {name_key(_site(step)) for step in servers}
    return frozenset(sites - {name_key(site.name) for site in plan.sites})


def former_gates(steps: Sequence[Step]) -> dict[str, str]:
    """The servers that are gates no more after these steps, each with its site."""
    gone = removed_servers(steps)
    return {
        step.name: _site(step)
        for step in steps
        if step.kind is EntryKind.SERVER
        and (
            step.entry.attributes.get("routing")
            if step.name in gone
            else step.before.get("routing") and not step.entry.attributes["routing"]
        )
    }


def without_gates(plan: RunPlan, steps: Sequence[Step]) -> list[str]:
    """Tells which sites lose their last gate by these steps, a line each."""
    left = {name_key(server.site) for server in plan.servers if server.routing}
    sites = {name_key(site): site for site in former_gates(steps).values()}
    left |= leaving_sites(plan, steps)
    return [
        f"{site} has no gate any more: give another server routing = true"
        for key, site in sites.items()
        if key not in left
    ]


#: Attributes that no server can change, and what to do instead.
_LASTING = {
    (EntryKind.SERVER, "site"): "a server stays in its site: remove it, and add another one there",
    (EntryKind.MACHINE, "site"): "a machine stays in its site: remove it and add it again",
    (EntryKind.QUEUE, "transactional"): "a queue stays as it was made: remove it and add it again",
}


def impossible(plan: RunPlan, difference: PlanDifference) -> list[str]:
    """The steps that cannot be carried out, in words; nothing should be changed then."""
    told = [*_sites_with_servers(plan, difference.steps)]
    leaving = leaving_sites(plan, difference.steps)
    by_site: dict[str, list[Step]] = {}
    for step in difference.steps:
        for key in step.before:
            if (step.kind, key) in _LASTING:
                told.append(f"{step.kind} {step.name}: {step.detail}: {_LASTING[step.kind, key]}")
            if key == "role":
                by_site.setdefault(_site(step), []).append(step)
        if step.action is Action.REMOVE and (reason := _not_removable(step, leaving)):
            told.append(f"{step.kind} {step.name}: {reason}")
    for site, steps in by_site.items():
        if sorted(str(step.entry.attributes["role"]) for step in steps) != ["bsc", "psc"]:
            names = ", ".join(f"{step.name} ({step.detail})" for step in steps)
            told.append(
                f"roles in {site}: {names}: only a PSC and a backup of its site can change their "
                "roles, with each other; a PEC cannot"
            )
    return told


def _not_removable(step: Step, leaving: Set[str]) -> str:
    if step.kind is not EntryKind.SERVER or step.entry.attributes["role"] == "bsc":
        return ""
    if step.entry.attributes["role"] == "psc" and name_key(_site(step)) in leaving:
        return ""
    return (
        "only a backup can be removed, or the PSC with its whole site; let a backup take its role "
        "first"
    )


def _sites_with_servers(plan: RunPlan, steps: Sequence[Step]) -> Iterator[str]:
    """Sites of the plan that a command has deleted, although their servers are there."""
    for step in steps:
        if step.kind is EntryKind.SITE and step.deleted:
            there = [s.name for s in _present_servers(plan, steps) if _in_site(s, step)]
            if there:
                yield (
                    f"site {step.name}: a command has deleted it, and its servers "
                    f"({', '.join(there)}) are still there: 'mqis up --adopt' takes the site out "
                    "of the file with all that is in it, and 'mqis up --remove' then its servers"
                )


def expelled_servers(plan: RunPlan, difference: PlanDifference) -> list[ServerPlan]:
    """The servers that are there, and whose sites a command has deleted."""
    steps = difference.steps
    deleted = [step for step in steps if step.kind is EntryKind.SITE and step.deleted]
    there = _present_servers(plan, steps)
    return [server for server in there if any(_in_site(server, step) for step in deleted)]


def _present_servers(plan: RunPlan, steps: Sequence[Step]) -> list[ServerPlan]:
    new = {name_key(s.name) for s in steps if s.kind is EntryKind.SERVER and s.action is Action.ADD}
    return [server for server in plan.servers if name_key(server.name) not in new]


def _in_site(server: ServerPlan, step: Step) -> bool:
    return name_key(server.site) == step.entry.key


def _site(step: Step) -> str:
    return str(step.entry.attributes["site"])


def compare(
    plan: RunPlan, before: RunPlan | None, present: Present, *, remove: bool = False
) -> PlanDifference:
    """Returns the steps in the order in which they can be carried out: removals come last.

    A link that commands have made goes with the site at its end.
    """
    sites = present.get(EntryKind.SITE, {}).keys() - entries_of(plan, EntryKind.SITE).keys()
    leaving = sites & entries_of(before, EntryKind.SITE).keys() if before else set()
    steps: list[Step] = []
    gone: list[Step] = []
    drift: list[Drift] = []
    for kind in EntryKind:
        wanted, known = entries_of(plan, kind), entries_of(before, kind) if before else {}
        there = present.get(kind, {})
        for key, entry in wanted.items():
            found = _step(kind, entry, known.get(key), there.get(key))
            steps += [] if found is None else [found]
            drift += _drift(kind, entry, known.get(key), there.get(key))
        for key in (key for key in there if key not in wanted):
            if key in known or (kind is EntryKind.LINK and leaving & set(key.split(" - "))):
                now = Entry(kind, key, there[key].name, there[key].attributes)
                gone.append(Step(Action.REMOVE, kind, now.name, now, {}))
            else:
                drift.append(Drift(kind, there[key].name, None, there[key].attributes))
    gone.reverse()  # queues before machines before sites
    order = [*steps, *(gone if remove else ())]
    named = sorted(drift, key=lambda found: (list(EntryKind).index(found.kind), found.name))
    return PlanDifference(tuple(order), () if remove else tuple(gone), tuple(named))


def _step(
    kind: EntryKind, entry: Entry, known: Entry | None, there: PresentEntry | None
) -> Step | None:
    if there is None:
        return Step(Action.ADD, kind, entry.name, entry, {}, deleted=known is not None)
    changed = {
        key: there.attributes[key]
        for key, value in entry.attributes.items()
        if key in there.attributes
        and value != there.attributes[key]
        and (known is None or known.attributes.get(key) != value)
    }
    return Step(Action.CHANGE, kind, there.name, entry, changed) if changed else None


def _drift(
    kind: EntryKind, entry: Entry, known: Entry | None, there: PresentEntry | None
) -> Iterator[Drift]:
    if there is None or known is None:
        return
    now = {
        key: there.attributes[key]
        for key, value in entry.attributes.items()
        if key in there.attributes
        and value != there.attributes[key]
        and known.attributes.get(key) == value
    }
    if now:
        yield Drift(kind, there.name, entry, now)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if value != "" else "none"
