"""Figures of merit: many runs played, settled and folded into means with standard errors."""
