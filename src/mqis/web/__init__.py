"""The console: an enterprise in the browser. What it shows is made by ``mqis.views.console``."""
