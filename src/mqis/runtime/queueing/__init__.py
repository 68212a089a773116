"""Queue managers on sockets."""
