"""One serving process: directory server, replication, discovery, accounts and monitoring."""
