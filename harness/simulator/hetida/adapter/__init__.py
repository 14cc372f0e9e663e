"""A generic REST adapter of hetida designer: synthetic plants, served fast, with configurable limits."""
