"""The connections of a client: endpoints, TLS, choosing a node, and leaving a silent one."""
