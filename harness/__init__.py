"""Load tests and capacity planning for ML pipeline platforms on Kubernetes."""
