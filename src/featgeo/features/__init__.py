"""Feature spaces: which functions of a variable are allowed, and how its columns are read."""
