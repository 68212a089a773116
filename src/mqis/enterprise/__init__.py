"""A whole enterprise on one computer: its plan, its processes, and their status.

The plan
    ``plan``: the enterprise file; ``example``: one to begin with; ``kept_plan``: the one that was
    carried out last; ``present_plan``: what there is now, as a plan; ``adopting``: writes what
    commands have changed into the file

Making what it says
    ``difference``: what a changed plan changes; ``placing`` and ``roles``: the servers with their
    addresses, files and present roles; ``first_server`` and ``setup``: their stores; ``configs``:
    their configurations; ``filling``: links, machines and queues

Processes
    ``launch``: from the plan to the end of ``mqis up``; ``supervisor``: starts, watches and stops
    them; ``states``: its file; ``control``: its socket; ``left_running``: what a killed one left

Changes while they run
    ``rotating``: signing keys; ``exchanging``: a PSC and its backup; ``lost_servers`` and
    ``replacing``: servers that cannot start

Their status
    ``roster``: whom to ask; ``polling``: asks; ``collected_status`` and ``status``: the answer,
    and its words; ``pipeline_input``: their files, gathered for the pipeline
"""
