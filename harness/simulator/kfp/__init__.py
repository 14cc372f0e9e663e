"""The simulated Kubeflow Pipelines: compiled pipelines, workflow controller, API server, persistence agent."""
