"""Makes a capture file without listening on an interface: proxies record their traffic."""
