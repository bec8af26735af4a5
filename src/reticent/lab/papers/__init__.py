"""What reproduces papers and older definitions, for comparison. No release rests on it."""
