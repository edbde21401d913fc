"""What a FROM clause can hold: joins and table functions."""
