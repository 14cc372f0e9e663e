"""Text from outside: made inert, kept free of secrets, counted and parsed."""
