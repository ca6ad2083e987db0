"""A whole table at once: which columns depend on which, how, and how sure that is."""
