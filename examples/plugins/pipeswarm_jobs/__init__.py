"""Plugins for a job service: a target, a collector, a detector and a schedule, one module each.

The service has queues. ``POST /jobs`` puts a job in one, ``GET /jobs`` lists them, ``POST /jobs/<id>/cancel`` and
``DELETE /jobs/<id>`` end and remove one, and ``GET /queues/<name>`` says how many jobs are waiting.
"""
