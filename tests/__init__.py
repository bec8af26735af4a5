"""The tests of reticent."""
