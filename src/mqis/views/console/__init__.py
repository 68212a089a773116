"""What the console shows, as plain values: the pages of ``mqis.web`` only lay it out."""
