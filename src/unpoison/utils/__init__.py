"""What needs none of ours: caches, threads, locks, options, optional packages."""
