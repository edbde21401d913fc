"""The command line: run a flow, ask its state, explain a plan, see a demonstration."""
