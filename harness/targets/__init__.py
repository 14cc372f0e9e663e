"""One module per platform: set up, submit one run, list runs in bulk.

A target does no I/O of its own: it is given an `Exchange` that sends one request, once, over whatever the caller uses
(gevent in the load, urllib3 in the observer). So the same code serves both, and a function is enough to test it.

Built-ins are found by module name; third parties register a module or an object under the entry-point group
``pipeswarm.targets``. Either offers what `Platform` declares.
"""
