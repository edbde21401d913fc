"""Subqueries: as conditions of WHERE, HAVING and ON, and as values anywhere in an expression."""
