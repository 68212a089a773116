"""The enterprise file to start from: five servers in three sites."""

from __future__ import annotations

EXAMPLE = r"""# mqis: an enterprise on one computer. 'mqis up' starts it, 'mqis down' ends it.
# Names ignore case. Entries that are added later are created by the next 'mqis up'; nothing is
# ever deleted because it is gone from here.

[enterprise]
name = "Meridian"
network = "Corporate IP"        # the connected network that all servers are on, for discovery

# --- sites, and what it costs to send a message between them --------------------------------------

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

# --- directory servers, a process each ------------------------------------------------------------
# role: pec, the primary enterprise controller, is one of them and the authority of the enterprise
# and of its own site; psc, a primary site controller, is that of its site; bsc is a backup.
# routing: whether it passes on messages of others, and is a gate of its site.

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

# --- machines and queues that the directory shall know; nothing runs for them ---------------------

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

# --- who may log on -------------------------------------------------------------------------------

[[account]]
name = "admin"
domain = ""                     # empty: the name of the enterprise
administrator = true
password_file = ""              # empty: one is made up, in passwords/admin of the run directory

[[account]]
name = "clerk"

# --- keys of every server's configuration ('mqis init' explains them all) -------------------------

[options.replication]
signing = "require"             # servers believe only signed messages of each other
journal = "journal"
heartbeat_s = 5

[options.log]
level = "info"
"""
