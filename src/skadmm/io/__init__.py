"""Files: arrays and JSON in one checksummed archive, and how values are stored in it. Nothing is ever unpickled."""
