"""What happened: records, run directories, digests."""
