"""Work on an Active Directory: connecting to it, and what commands do there."""
