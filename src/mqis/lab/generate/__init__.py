"""Journals and exports of a made-up enterprise of any size, with faults whose places are known.

Directory changes go through the directory's own events and are written down as a server would;
between servers a message simply arrives, or does what its fault says. Same plan, same bytes.
"""

from mqis.lab.generate.generate import Generated, generate
from mqis.lab.generate.plan import GenerateError, Plan

__all__ = ["GenerateError", "Generated", "Plan", "generate"]
