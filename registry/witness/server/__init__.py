"""The witness server: a git remote with a push log that someone else keeps."""
