"""Requests to the platform: clients, connections and credentials."""
