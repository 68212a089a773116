"""Configuration: the file, its sections and checks, and opening the stores that it names."""
