"""Subtly wrong files of small models: how many of them does `trueport verify` find?"""
