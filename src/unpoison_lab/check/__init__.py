"""What `unpoison check` tries: attacks on a copy of the documents, or on a running system."""
