"""Enterprises for experiments: the demonstration, generated journals, messages over sockets."""
