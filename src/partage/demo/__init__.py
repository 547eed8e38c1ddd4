"""The demo: a controller and a street of simulated bakers."""
