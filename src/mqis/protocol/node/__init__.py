"""One server of an enterprise, put together from its machines and driven from outside."""
