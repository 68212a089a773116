"""The console: an enterprise in the browser. ``mqis.views.console`` prepares its content."""
