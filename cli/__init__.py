"""The command line and the workflows that join the rooms."""
