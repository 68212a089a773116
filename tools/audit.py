"""Known vulnerabilities in what the locks install: ``make audit``.

    python tools/audit.py PIP_AUDIT LOCK...

pip-audit ends well even if it could ask nobody, so its report is read: a package that nothing is
known about counts as such. Exit status 0: all were asked about and none has a known vulnerability;
1: some have; 2: the service does not answer, or not about all.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: How long the service may take to answer about one package.
_TIMEOUT_S = "15"


@dataclass(slots=True)
class Report:
    asked: set[str] = field(default_factory=set)
    #: Package and version -> why nothing is known about it.
    unknown: dict[str, str] = field(default_factory=dict)
    #: Package and version, vulnerability, versions that are without it.
    found: list[tuple[str, str, str]] = field(default_factory=list)

    def add(self, content: dict[str, Any]) -> None:
        """What pip-audit says of one lock."""
        for entry in content["dependencies"]:
            name = f"{entry['name']} {entry.get('version', '')}".strip()
            if name in self.asked:
                continue
            self.asked.add(name)
            if "skip_reason" in entry:
                self.unknown[name] = entry["skip_reason"]
            for vulnerability in entry.get("vulns", ()):
                fixed = ", ".join(vulnerability["fix_versions"]) or "none yet"
                self.found.append((name, vulnerability["id"], fixed))

    def tell(self) -> tuple[str, int]:
        """The lines to print, and the exit status."""
        lines = [f"{name}: {id_}; fixed in {fixed}" for name, id_, fixed in self.found]
        if lines:
            return "\n".join(lines), 1
        if not self.asked or len(self.unknown) == len(self.asked):
            return "the vulnerability service does not answer: nothing is known", 2
        if self.unknown:
            names = ", ".join(sorted(self.unknown))
            return f"nothing is known about {names}", 2
        return f"{len(self.asked)} packages, none with a known vulnerability", 0


def audit(pip_audit: str, lock: Path) -> dict[str, Any] | None:
    """The report about one lock; None if there is none."""
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
            print(f"{lock}: the vulnerability service does not answer: nothing is known")
            return 2
        report.add(content)
    text, status = report.tell()
    print(text)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
