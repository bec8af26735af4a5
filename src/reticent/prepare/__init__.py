"""What is done about missing cells before the noise, as public values: an engine carries it out on the rows."""
