"""Connection-oriented DCE/RPC: PDUs, security trailers, towers (C706, MS-RPCE)."""
