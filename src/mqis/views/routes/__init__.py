"""Presentation of routes: finding machines by name, routes as text and as a map."""
