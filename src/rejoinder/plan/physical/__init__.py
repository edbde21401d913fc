"""The physical plan as frozen data: dataflow, steps, arrangements."""
