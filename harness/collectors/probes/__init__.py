"""Small requests to services and stores that show whether they answer."""
