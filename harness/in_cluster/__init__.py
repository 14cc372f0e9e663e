"""Load tests that run inside a cluster: their manifests, the way there and back, and what their pods do."""
