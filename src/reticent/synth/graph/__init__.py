"""Fit one joint table to many noisy marginals: graphs, belief propagation, mirror descent. After the noise."""
