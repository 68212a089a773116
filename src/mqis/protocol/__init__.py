"""Sans-I/O machines and pure rules over the wire values. Time and entropy come in as arguments."""
