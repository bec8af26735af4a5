"""One estimate for each of many small cells: a mean, a slope, or a prediction from a line."""
