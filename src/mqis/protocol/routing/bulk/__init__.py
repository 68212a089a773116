"""Routes between all sites at once, and the impact of losing links or gates, as arrays.

Sites are numbered by the rank of their GUIDs, so that of two numbers the smaller wins a tie. All
results are identical to those of ``table.build_table``.
"""
