"""Formulas of derived fields: what they may say, and how columns are computed by them."""
