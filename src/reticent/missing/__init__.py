"""Which answers are missing: masks made for trials, descriptions, and whether nonresponse depends on what was answered."""
