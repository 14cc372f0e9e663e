"""What keeps the workflow controller and the API server from going on."""
