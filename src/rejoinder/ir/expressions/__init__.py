"""Scalar expressions: the tree, what its calls guarantee, and what follows from its shape."""
