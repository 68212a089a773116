"""The directory service over RPC: MS-MQDS."""
