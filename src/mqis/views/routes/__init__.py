"""Routes for people: from names to machines, as text and as a map."""
