"""The world of routed queues: queue managers that forward messages from site to site.

``queue_scenario`` draws the sites, the messages and the faults, ``queue_world`` performs them over
the simulated connections of ``sim.streams``, and ``queue_checks`` judges what the queue managers
report.
"""
