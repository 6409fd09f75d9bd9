"""Static pages: one file each, that asks for nothing and runs from a folder."""
