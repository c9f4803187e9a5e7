"""Families of formulas that the tool can draw by itself."""
