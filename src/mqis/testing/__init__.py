"""Fakes and builders for tests, ours and those of programs that use mqis."""
