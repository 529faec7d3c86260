"""Watches, and the events that they tell."""
