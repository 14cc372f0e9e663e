"""The platform's runs: listing, details, callbacks, and when to poll."""
