"""The lab: a simulated state, samples of it, and people who do not answer. The library never imports it."""
