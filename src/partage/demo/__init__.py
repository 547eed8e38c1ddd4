"""The demo: a controller and a dozen simulated bakers."""
