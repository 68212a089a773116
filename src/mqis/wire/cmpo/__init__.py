"""MS-CMPO: the RPC interface that carries sessions between connection managers."""
