"""Fakes and builders for the tests of mqis and of programs that use it."""
