"""Tables to try synthesizers on: four that others use, where their rows are at hand, and a simulated census always."""
