"""Runs as the platform reports them: by bulk listing or by callback."""
