"""Workflows of Argo's own: any Workflow object that clients create is run as its controller would run it.

Times of controller, pods and nodes follow the profile, as for KFP's workflows. What a container does is not known: its
duration is that of the profile's step with the task's name, and its outputs are the defaults that the template gives.
What can't be run like this is refused with the field's name.
"""
