"""The output of ``mqis tour``: numbered steps, and statements that are checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from mqis.cli.output import cell
from mqis.wire.errors import MqisError


class Guide:
    """Prints the steps of the tour, numbered and formatted alike."""

    def __init__(self, target: Console) -> None:
        self._console = target
        self._number = 0
        self._title = ""

    def step(self, title: str, what: str) -> None:
        self._number += 1
        self._title = title
        heading = Text(f"\n{self._number}. ", style="bold cyan")
        heading.append(title, style="bold").append(f"  {what}", style="default")
        self._console.print(heading)

    def show(self, renderable: RenderableType) -> list[str]:
        """Prints something; returns its lines as they are on the screen, without styles."""
        padded = Padding(renderable, (0, 0, 0, 3), expand=False)
        self._console.print(padded)
        plain = Console(width=self._console.width, file=StringIO(), color_system=None)
        with plain.capture() as captured:
            plain.print(padded)
        return [line.strip() for line in captured.get().splitlines()]

    def line(self, text: str, style: str = "") -> None:
        self._console.print(cell(text, style), soft_wrap=True)

    def confirm_equal(self, text: str, saw: object, expected: object) -> None:
        """Prints a statement with a tick; raises MqisError if the two are not equal."""
        self.confirm(text, saw == expected, saw=saw, expected=expected)

    def confirm(self, text: str, holds: bool, *, saw: object, expected: object) -> None:
        """Prints a statement with a tick; raises MqisError if it does not hold.

        The error says what the tour ``saw`` and what it ``expected``.
        """
        if not holds:
            raise MqisError(
                f"step {self._number}, {self._title}: this does not hold: {text}; "
                f"saw {saw}, expected {expected}"
            )
        self._console.print(Text("   ✓ ", style="green").append_text(cell(text, "default")))

    @contextmanager
    def waiting(self, what: str, total: float | None = None) -> Iterator[Callable[[float], None]]:
        """Shows a progress bar during the block; yields the function that moves it."""
        columns = (TextColumn("   {task.description}"), BarColumn(), TimeElapsedColumn())
        shown = self._console.is_terminal
        with Progress(
            *columns, console=self._console, transient=True, disable=not shown
        ) as progress:
            task = progress.add_task(what, total=total)
            yield lambda done: progress.update(task, completed=done)
