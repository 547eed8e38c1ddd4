"""Theory: the paper's bounds and premises, and the audit that checks them on played runs."""
