"""Writes deploy/prometheus/alerts.yml and the sections of docs/alerts.md from the alerts.

Usage: python tools/alerts_doc.py [--check]

``--check`` writes nothing and exits with 1 if one of them is out of date.
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

from mqis.server.monitoring.alerting import AlertRule, alert_rules

ROOT = Path(__file__).resolve().parents[1]
RULES = ROOT / "deploy" / "prometheus" / "alerts.yml"
DOCUMENT = ROOT / "docs" / "alerts.md"
BEGIN, END = "<!-- begin: tools/alerts_doc.py -->", "<!-- end -->"


def rules(current: str) -> str:
    """Returns ``current`` with its groups replaced."""
    head = current.partition("groups:\n")[0]
    groups = groupby(alert_rules().values(), lambda rule: rule.group)
    texts = (
        f"  - name: {name}\n    rules:\n" + "".join(_rule(rule) for rule in each)
        for name, each in groups
    )
    return f"{head}groups:\n" + "\n".join(texts)


def _rule(rule: AlertRule) -> str:
    expr = rule.expr
    if "\n" in expr:
        expr = "|\n" + "\n".join(f"          {line}" for line in expr.splitlines())
    held = f"        for: {rule.held}\n" if rule.held else ""
    return (
        f"      - alert: {rule.name}\n        expr: {expr}\n{held}"
        f"        labels: {{severity: {rule.severity}}}\n        annotations:\n"
        f'          summary: "{rule.summary}"\n          description: "{rule.description}"\n'
        f"          runbook_url: {rule.anchor}\n"
    )


def document(current: str) -> str:
    """Returns ``current`` with its sections replaced."""
    before, _, rest = current.partition(BEGIN)
    _, _, after = rest.partition(END)
    parts = []
    for title, each in groupby(alert_rules().values(), lambda rule: rule.title):
        parts.append(f"## {title}\n")
        parts += (f"### {rule.name}\n\n{rule.meaning}\n" for rule in each)
    return f"{before}{BEGIN}\n\n" + "\n".join(parts) + f"\n{END}{after}"


def main() -> int:
    wanted = {
        RULES: rules(RULES.read_text("utf-8")),
        DOCUMENT: document(DOCUMENT.read_text("utf-8")),
    }
    stale = [path for path, text in wanted.items() if path.read_text("utf-8") != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(ROOT)}: out of date, run tools/alerts_doc.py")
        return int(bool(stale))
    for path in stale:
        path.write_text(wanted[path], encoding="utf-8")
        print(f"{path.relative_to(ROOT)}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
