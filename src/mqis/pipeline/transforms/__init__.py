"""DataFrame to DataFrame, pure: each ends in an explicit ``select``."""
