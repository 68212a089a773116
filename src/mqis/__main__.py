"""``python -m mqis`` is the ``mqis`` command."""

from __future__ import annotations

from mqis.cli.entry import main

if __name__ == "__main__":
    main()
