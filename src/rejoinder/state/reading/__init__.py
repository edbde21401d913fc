"""Views as tables and changes, read from their changelogs; rows as text."""
