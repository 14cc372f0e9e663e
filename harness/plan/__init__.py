"""What a test will do: its options, checks, plan and assignment to workers; nothing here knows Locust or gevent."""
