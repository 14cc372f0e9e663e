"""What nodes, their autoscaler and quotas do to pods."""
