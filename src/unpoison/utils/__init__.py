"""What needs none of ours: caches, threads, locks, private files, options, optional packages."""
