"""One suite for all engines: the same rows and the same wants give the same bytes before any noise."""
