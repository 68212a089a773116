"""The world of a mirror: two domain controllers with faults, and the mirror that follows them.

``domain`` is the domain with its controllers, ``edits`` are the changes of its administrators,
``scenario`` draws the steps, ``world`` performs them with the production code over loopback
sockets, ``checks`` compares the copy with the domain, and ``mutations`` are bugs to find.

It is no world of ``mqis sim``: the mirror is in the layer ``admin``, which ``sim`` does not import.
``python -m tests.sim.mirror`` runs seeds; ``make sim`` does so too.
"""
