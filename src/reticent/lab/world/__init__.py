"""Made-up people: a state, its tracts, surveys of it, and their nonresponse."""
