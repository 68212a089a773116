"""Runs the administrator's day on real servers, and checks everything that it says.

Usage: python -m tools.story [--sites 20] [--machines 200] [--queues 3000] [--keep DIR]
           [--no-report] [--second-week] [--page docs/story.md]

The enterprise comes up as 'mqis up' starts it: every site has a live server. Exit status 1 at the
first thing that is not as wanted.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from mqis.wire.errors import MqisError
from tools.story.estate import StoryEstate
from tools.story.page import write_page
from tools.story.second_week import SecondWeek
from tools.story.shell import StoryError, StoryShell
from tools.story.telling import Story

#: The outputs of all commands, in the directory of the run.
OUTPUTS = "outputs.json"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sites", type=int, default=20)
    parser.add_argument("--machines", type=int, default=200)
    parser.add_argument("--queues", type=int, default=3000)
    parser.add_argument("--keep", type=Path, help="a new directory for everything")
    parser.add_argument("--no-report", action="store_true", help="leave the pipeline out")
    parser.add_argument("--second-week", action="store_true", help="tell docs/second-week.md")
    parser.add_argument("--page", type=Path, help="write the outputs into this page")
    options = parser.parse_args(arguments)
    show = Console(width=None if sys.stdout.isatty() else 120)
    with tempfile.TemporaryDirectory(prefix="mqis-story-") as made:
        directory = (options.keep or Path(made)).resolve()
        directory.mkdir(parents=True, exist_ok=True)
        try:
            estate = StoryEstate(options.sites, options.machines, options.queues)
            kind = SecondWeek if options.second_week else Story
            story = kind(estate, StoryShell(directory), show, not options.no_report)
            try:
                story.tell()
            finally:
                outputs = _by_command(story)
                (directory / OUTPUTS).write_text(json.dumps(outputs, indent=2), "utf-8")
        except (StoryError, MqisError, ValueError) as error:
            show.print(f"WRONG: {error}", style="red", markup=False)
            return 1
    if options.page is not None:
        write_page(options.page, outputs)
    return 0


def _by_command(story: Story) -> dict[str, str]:
    return {
        command: output
        for job in story.jobs
        for command, output in zip(job.commands, story.outputs.get(job.name, ()), strict=False)
    }


if __name__ == "__main__":
    sys.exit(main())
