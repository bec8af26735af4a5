"""Which answers are missing: masks made for trials, descriptions, and whether silence depends on what was answered."""
