"""Pure mathematics of the workload and the cells: no I/O but its own data."""
