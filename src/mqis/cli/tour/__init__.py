"""``mqis tour``: one module for each part of the tour."""
