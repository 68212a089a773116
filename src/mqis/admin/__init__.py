"""Operations on a server: join, promote, back up and restore, export and import."""
