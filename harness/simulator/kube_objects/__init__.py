"""The simulated platform as Kubernetes shows it: manifests, events, usage, metrics."""
