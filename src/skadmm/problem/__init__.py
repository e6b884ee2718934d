"""The mathematical problem: data, loss, penalties and constraint; optimality, certificates, existence, structure."""
