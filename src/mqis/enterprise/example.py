"""The example of an enterprise file: five servers in three sites."""

from __future__ import annotations

EXAMPLE = r"""# mqis: an enterprise on one computer. 'mqis up' starts it, 'mqis down' ends it.
# Case does not matter in names. After a change in this file, 'mqis up' shows what it means and
# carries it out, while the servers run. An entry that is taken out stays until 'mqis up --remove'.

[enterprise]
name = "Meridian"
network = "Corporate IP"        # the connected network that all servers are on, for discovery

# --- sites, and the cost of sending a message between them ----------------------------------------

[[site]]
name = "Amsterdam"

[[site]]
name = "Berlin"

[[site]]
name = "Chicago"

[[link]]
sites = ["Amsterdam", "Berlin"]
cost = 10
description = "leased line"

[[link]]
sites = ["Berlin", "Chicago"]
cost = 20
description = "transatlantic fibre"

[[link]]
sites = ["Amsterdam", "Chicago"]
cost = 50
description = "satellite"

# --- directory servers: each is a process ---------------------------------------------------------
# role: pec: the one primary enterprise controller, the authority for the enterprise and its own
# site; psc: a primary site controller, the authority for its site; bsc: a backup.
# routing: true if it forwards messages of other machines and is a gate of its site.

[[server]]
name = "ams-dir1"
site = "Amsterdam"
role = "pec"
routing = true

[[server]]
name = "ams-dir2"
site = "Amsterdam"
role = "bsc"

[[server]]
name = "ber-dir1"
site = "Berlin"
role = "psc"
routing = true

[[server]]
name = "ber-dir2"
site = "Berlin"
role = "bsc"

[[server]]
name = "chi-dir1"
site = "Chicago"
role = "psc"
routing = true
rpc_port = 0                    # 0: a free port, here and below
mapper_port = 0
queue_port = 0
discovery_port = 0
monitor_port = 0

# --- machines and queues: only entries in the directory -------------------------------------------

[[machine]]
name = "C14"
site = "Chicago"

[[machine]]
name = "ams-desk1"
site = "Amsterdam"
address = ""                    # its IPv4 address, if there is one

[[machine]]
name = "ber-app1"
site = "Berlin"

[[queue]]
path = 'C14\orders'
label = "Incoming orders"
transactional = true

[[queue]]
path = 'ber-app1\audit'
label = "Audit trail"
journal = true

# --- accounts that may log on ---------------------------------------------------------------------

[[account]]
name = "admin"
domain = ""                     # empty: the name of the enterprise
administrator = true
password_file = ""              # empty: generated, in passwords/admin of the run directory

[[account]]
name = "clerk"

# --- keys of every server's configuration ('mqis init' explains them all) -------------------------

[options.replication]
signing = "require"             # servers accept only signed messages of each other
journal = "journal"
heartbeat_s = 5

[options.log]
level = "info"
"""
