"""Looking a server over: each finding says what it is and what to do about it."""
