"""The composition root: configuration, opening of stores, the jobs that commands run."""
