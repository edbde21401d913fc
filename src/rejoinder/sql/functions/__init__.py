"""Scalar functions and operators, and the compiler that puts expressions together."""
