"""The artifact store and the database."""
