"""A discrete-event model of the platform, run as fast as it goes or served over HTTP in wall time.

The layers, lowest first: engine (events, queues, distributions) · profile · cluster, serving · kfp, hetida, kube_api ·
platform · kube_objects, faults · serve, fast · commands.
"""
