"""Discovery over UDP sockets."""
