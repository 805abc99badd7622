"""One cell format, one resumable runner, timing, fresh processes."""
