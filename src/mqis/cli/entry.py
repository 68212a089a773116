"""The entry point of the ``mqis`` command.

The command line takes a moment to load. This module does not, so that Ctrl-C in that moment ends in
one line too.
"""

from __future__ import annotations

import sys


def main() -> None:
    try:
        from mqis.cli.main import main as run  # noqa: PLC0415 -- the import is what takes long
    except KeyboardInterrupt:
        print("mqis: interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    run()
