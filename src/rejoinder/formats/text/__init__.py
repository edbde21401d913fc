"""Rows as text: plain values, aligned tables, text that a terminal or a spreadsheet cannot interpret."""
