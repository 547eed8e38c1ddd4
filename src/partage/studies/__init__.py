"""Studies: experiments as data."""
