"""The jobs that ``mqis pipeline`` runs: they read and write tables; transforms do the rest."""
