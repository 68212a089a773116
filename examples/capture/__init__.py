"""A capture file without listening on an interface: proxies remember what passes through them."""
