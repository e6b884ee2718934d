"""Compiled access to rows and sums over samples."""
