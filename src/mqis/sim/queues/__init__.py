"""The world of routed queues: queue managers that forward messages from site to site.

``scenario`` draws the sites, the messages and the faults, ``world`` performs them over the
simulated connections of ``sim.streams``, and ``checks`` judges what the queue managers report.
"""
