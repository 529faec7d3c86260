"""Pawl: leases and locks agreed by a quorum."""
