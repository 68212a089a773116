"""DCE/RPC associations without I/O: server and client machines, groups, context handles."""
