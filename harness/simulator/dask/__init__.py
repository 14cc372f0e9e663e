"""Clusters of the Dask Kubernetes operator: what it makes of the objects that clients create, and a model of the work.

The operator's part follows its public source (dask/dask-kubernetes, release 2025.7.0): names, labels, the timers, and
what is deleted with what. Dask itself is a model: a stage is a number of tasks, which its workers take in turn.
"""
