"""The software bill of materials (CycloneDX 1.6) of a release, from the locks.

It has every package that an installation with all extras takes, in the locked version, and who
needs whom, as the ``# via`` comments of the locks tell. What only builds mqis is not in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

#: The locks of the package and its extras.
LOCKS = ("run", "pipeline", "kerberos", "dns")
_PACKAGE = re.compile(r"^([A-Za-z0-9][\w.-]*)==([^\s;\\]+)(?: ; ([^\\]+?))?(?: \\)?$")
_VIA = re.compile(r"^    #(?: via)?\s+(?:-r )?([\w.-]+)")
_REQUIREMENT = re.compile(r"^Requires-Dist: ([\w.-]+)[^;\n]*(?:; (.*))?$", re.MULTILINE)
_EXTRA = re.compile(r"extra == '(\w+)'")


@dataclass(frozen=True, slots=True)
class LockedPackage:
    name: str
    version: str
    #: The environment that takes it, such as ``sys_platform == 'win32'``; empty: every one.
    marker: str
    #: The packages and files that asked for it.
    via: frozenset[str]

    @property
    def url(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"


#: Packages by name; of some, Pythons and systems take different versions.
Locked = Mapping[str, Sequence[LockedPackage]]


def locked(requirements: Path, names: Iterable[str] = LOCKS) -> Locked:
    """The packages of these locks."""
    found: dict[str, dict[str, LockedPackage]] = {}
    for name in names:
        for package in _packages((requirements / f"{name}.lock").read_text("utf-8")):
            versions = found.setdefault(package.name, {})
            known = versions.get(package.version, package)
            versions[package.version] = replace(known, via=known.via | package.via)
    return {name: list(versions.values()) for name, versions in sorted(found.items())}


def _packages(text: str) -> Iterable[LockedPackage]:
    for block in re.split(r"\n(?=\S)", text):
        lines = block.splitlines()
        head = _PACKAGE.match(lines[0]) if lines else None
        if head is not None:
            via = frozenset(match[1] for line in lines[1:] if (match := _VIA.match(line)))
            yield LockedPackage(_normal(head[1]), head[2], head[3] or "", via)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements_of(metadata: str) -> dict[str, set[str]]:
    """The extras that ask for each direct requirement; none in the set: the core does."""
    found: dict[str, set[str]] = {}
    for name, condition in _REQUIREMENT.findall(metadata):
        extras = set(_EXTRA.findall(condition)) - {"all"}
        if extras or "extra ==" not in condition:
            found.setdefault(_normal(name), set()).update(extras)
    return found


def bill_of_materials(version: str, metadata: str, packages: Locked, moment: int) -> dict[str, Any]:
    """The SBOM as JSON; ``metadata`` is the wheel's, ``moment`` the time of the build."""
    direct = requirements_of(metadata)
    if missing := sorted(direct.keys() - packages.keys()):
        raise ValueError(f"no lock has {', '.join(missing)}")
    needs: dict[str, set[str]] = {name: set() for name in packages}
    for name, versions in packages.items():
        for parent in {each for package in versions for each in package.via} & packages.keys():
            needs[parent].add(name)
    core = _reached([name for name, extras in direct.items() if not extras], needs)
    every = sorted(_reached(direct, needs))
    own = f"pkg:pypi/mqis@{version}"
    text = json.dumps([own, _urls(every, packages)])
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, sha256(text.encode()).hexdigest())}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": "mqis",
                "version": version,
                "purl": own,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": [
            _component(package, "required" if name in core else "optional")
            for name in every
            for package in packages[name]
        ],
        "dependencies": [
            {"ref": own, "dependsOn": _urls(direct, packages)},
            *(
                {"ref": package.url, "dependsOn": _urls(needs[name], packages)}
                for name in every
                for package in packages[name]
            ),
        ],
    }


def _urls(names: Iterable[str], packages: Locked) -> list[str]:
    return sorted(package.url for name in names for package in packages[name])


def _component(package: LockedPackage, scope: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "library",
        "bom-ref": package.url,
        "name": package.name,
        "version": package.version,
        "scope": scope,
        "purl": package.url,
    }
    if package.marker:
        made["properties"] = [{"name": "python:marker", "value": package.marker}]
    return made


def _reached(names: Iterable[str], needs: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += needs[name]
    return found
