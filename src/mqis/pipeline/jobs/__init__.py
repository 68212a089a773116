"""What ``mqis pipeline`` runs: jobs own reading and writing, transforms the rest."""
