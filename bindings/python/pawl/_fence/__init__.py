"""The store of the highest tokens, in a file."""
