"""An LDAP client on asyncio: connections, logons, searches in pages, failover."""
