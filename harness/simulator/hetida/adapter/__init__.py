"""A generic REST adapter of hetida designer: synthetic plants, served fast, with limits that are planted on purpose."""
