"""The comparison of two directories: readers of each kind of side, and the differences in words."""
