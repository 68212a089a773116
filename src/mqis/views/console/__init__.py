"""The data of the console's pages, as plain values; ``mqis.web`` only lays them out."""
