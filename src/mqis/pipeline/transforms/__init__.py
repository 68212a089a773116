"""Pure functions from DataFrame to DataFrame; each ends in an explicit ``select``."""
