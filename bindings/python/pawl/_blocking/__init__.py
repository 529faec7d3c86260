"""The client for programs that block: that of `pawl.aio`, in a thread of its own."""
