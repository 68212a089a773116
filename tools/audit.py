"""Reports known vulnerabilities in the packages that the locks install: ``make audit``.

    python tools/audit.py PIP_AUDIT LOCK...

pip-audit exits with 0 even if it cannot reach the service, so this reads its report and counts the
packages that it skipped. Exit status 0: all packages were checked and none has a known
vulnerability; 1: some have; 2: the service did not answer, or not for all packages.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: The time limit of the service for one package.
_TIMEOUT_S = "15"


@dataclass(slots=True)
class Report:
    packages: set[str] = field(default_factory=set)
    #: By package and version: the reason why it was not checked.
    unknown: dict[str, str] = field(default_factory=dict)
    #: Package and version, vulnerability, versions that fix it.
    found: list[tuple[str, str, str]] = field(default_factory=list)

    def add(self, content: dict[str, Any]) -> None:
        """Adds pip-audit's report about one lock."""
        for entry in content["dependencies"]:
            name = f"{entry['name']} {entry.get('version', '')}".strip()
            if name in self.packages:
                continue
            self.packages.add(name)
            if "skip_reason" in entry:
                self.unknown[name] = entry["skip_reason"]
            for vulnerability in entry.get("vulns", ()):
                fixed = ", ".join(vulnerability["fix_versions"]) or "none yet"
                self.found.append((name, vulnerability["id"], fixed))

    def summary(self) -> tuple[str, int]:
        """The lines to print, and the exit status."""
        lines = [f"{name}: {id_}; fixed in {fixed}" for name, id_, fixed in self.found]
        if lines:
            return "\n".join(lines), 1
        if not self.packages or len(self.unknown) == len(self.packages):
            return "the vulnerability service does not answer: nothing was checked", 2
        if self.unknown:
            names = ", ".join(sorted(self.unknown))
            return f"not checked: {names}", 2
        return f"{len(self.packages)} packages, none with a known vulnerability", 0


def audit(pip_audit: str, lock: Path) -> dict[str, Any] | None:
    """Runs pip-audit on one lock; returns its report, None if it made none."""
    done = subprocess.run(
        [
            *(pip_audit, "--disable-pip", "--require-hashes", "--progress-spinner", "off"),
            *("--format", "json", "--timeout", _TIMEOUT_S, "--requirement", str(lock)),
        ],
        capture_output=True,
        check=False,
    )
    try:
        content: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return None
    return content


def main(pip_audit: str, locks: list[str]) -> int:
    report = Report()
    for lock in locks:
        content = audit(pip_audit, Path(lock))
        if content is None:
            print(f"{lock}: the vulnerability service does not answer: nothing was checked")
            return 2
        report.add(content)
    text, status = report.summary()
    print(text)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
