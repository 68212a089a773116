"""What a server tells about itself while it runs: its status and its metrics."""
