"""Writes docs/metrics.md and the Grafana dashboard from the catalogue of metrics.

Usage: python tools/metrics_doc.py [--check]

``--check`` writes nothing and exits with 1 if one of them is out of date.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mqis.server.monitoring.metrics.all_metrics import METRICS, Metric

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools.dashboard import dashboard  # noqa: E402

DOCUMENT = ROOT / "docs" / "metrics.md"
DASHBOARD = ROOT / "deploy" / "grafana" / "mqis.json"
BEGIN, END = "<!-- begin: tools/metrics_doc.py -->", "<!-- end -->"


def tables() -> str:
    lines: list[str] = []
    for group in dict.fromkeys(metric.group for metric in METRICS):
        lines += [
            f"## {group}",
            "",
            "| metric | type | labels | what it tells |",
            "|---|---|---|---|",
        ]
        lines += [_row(metric) for metric in METRICS if metric.group == group]
        lines.append("")
    return "\n".join(lines)


def _row(metric: Metric) -> str:
    labels = ", ".join(metric.labels)
    return f"| `{metric.exported}` | {metric.kind.value} | {labels} | {metric.help} |"


def document(current: str) -> str:
    """Returns ``current`` with its tables replaced."""
    before, _, rest = current.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables()}\n{END}{after}"


def main() -> int:
    wanted = {
        DOCUMENT: document(DOCUMENT.read_text(encoding="utf-8")),
        DASHBOARD: json.dumps(dashboard(), indent=1) + "\n",
    }
    stale = [p for p, text in wanted.items() if not p.exists() or p.read_text("utf-8") != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(ROOT)}: out of date, run tools/metrics_doc.py")
        return int(bool(stale))
    for path in stale:
        path.write_text(wanted[path], encoding="utf-8")
        print(f"{path.relative_to(ROOT)}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
