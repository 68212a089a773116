"""The directory service on the wire: MS-MQDS behind the RPC runtime."""
