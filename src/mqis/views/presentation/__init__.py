"""Objects, records and routes as people read them, for the command line and the console alike."""
