"""An RPC interface that uses every shape NDR has, its service and its client."""
