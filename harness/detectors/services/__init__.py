"""Runtimes and adapters that are called, such as hetida's."""
