"""The client's side of LDAP without I/O: operations, addresses, ranges, and the port of stores."""
