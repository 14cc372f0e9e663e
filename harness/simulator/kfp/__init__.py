"""The simulated Kubeflow Pipelines: API server, pipeline catalogue, persistence agent."""
