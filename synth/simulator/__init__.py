"""A deterministic teacher for tests and plans: a real HTTP server with scripted skill, speed and faults."""
