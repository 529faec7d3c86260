"""What needs nothing else of the package: clocks, errors, tasks, and the checks of arguments."""
