"""Objects, records and routes as text, for the command line and the console."""
