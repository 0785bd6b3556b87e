"""Analyses of syntax trees; each leaves its results as notes on the nodes."""
