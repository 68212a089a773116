"""The pages: one module for each entry of the menu."""
