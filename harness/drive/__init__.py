"""The load: open-model dispatch on an absolute clock, the ledger, and all of Locust's wiring."""
