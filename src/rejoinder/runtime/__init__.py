"""Execution of a plan: what a task does in each round with its streams and its part of the state.

`steps` has one file for each step of `plan.physical.steps`.
"""
