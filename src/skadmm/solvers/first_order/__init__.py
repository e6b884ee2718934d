"""The stochastic and batch ADMM methods: one rule per file."""
