"""Routes between all sites at once, and what happens to them when something goes: plain arrays.

Sites are numbered by the rank of their GUIDs, so that of two numbers the smaller wins a tie. All
answers are bit-identical to those of ``table.build_table``.
"""
