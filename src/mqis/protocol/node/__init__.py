"""One server of an enterprise, composed of its state machines and run by a driver."""
