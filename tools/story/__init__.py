"""An administrator's day on a running enterprise, as a script: ``python -m tools.story``.

``estate`` describes the enterprise, ``commands`` the commands of each job, ``planting`` the faults,
``clients`` the users who go on working, ``judging`` what has to hold, ``telling`` the day itself,
and ``page`` writes the outputs into docs/story.md.
"""
