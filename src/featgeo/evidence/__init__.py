"""How sure: tests of independence and of conditional independence."""
