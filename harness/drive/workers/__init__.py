"""The load of one process and of many: generators, their messages, and records on their way to the master."""
