"""``mqis tour``: one module a step, each of which shows something and checks that it is so."""
