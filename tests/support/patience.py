"""How long a test waits for something that must happen."""

PATIENCE = 120.0  # seconds. Only a failure takes this long: a test never succeeds because this time has passed.
