"""Bernoulli likelihoods and their Beta(1/2, 1/2) mixture, by scipy."""

from scipy import special


def log_mixture(n, s):
    """Return the logarithm of the mixture of n rewards with the sum s."""
    return special.betaln(s + 0.5, n - s + 0.5) - special.betaln(0.5, 0.5)


def log_likelihood(n, s, mean):
    """Return the logarithm of the likelihood of n rewards with the sum s."""
    return special.xlogy(s, mean) + special.xlogy(n - s, 1 - mean)
