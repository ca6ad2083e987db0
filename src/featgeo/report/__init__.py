"""Figures and the page, from results only: nothing here computes."""
