"""Runs as jobs of a Slurm cluster, submitted through submitit."""
