"""``python -m mqis`` is the ``mqis`` command."""

from __future__ import annotations

from mqis.cli.main import main

main()
