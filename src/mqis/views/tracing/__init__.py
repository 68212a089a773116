"""One change through a whole enterprise, from what its servers have written down."""
