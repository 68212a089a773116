"""Discovery on UDP sockets."""
