"""Arithmetic as eager does it: of sizes, of integers near their ends, of functions to the last digits."""
