"""Elections: candidates, leaders, and those who observe them."""
