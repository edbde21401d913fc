"""WHY and WHY NOT: the input rows that make a row of a view, and the first step at which an expected row fails."""
