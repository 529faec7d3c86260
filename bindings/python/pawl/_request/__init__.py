"""Requests: their calls, repeated at other nodes or after a rest, and what nodes answer."""
