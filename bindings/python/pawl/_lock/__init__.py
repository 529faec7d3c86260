"""Locks: acquiring, renewing, losing and releasing them, and locks that end with the connection."""
