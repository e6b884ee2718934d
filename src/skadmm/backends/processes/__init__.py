"""Rows divided among processes of this machine."""
