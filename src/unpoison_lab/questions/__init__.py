"""Questions from your own documents: each with a true answer, a false one, and the passage that proves the true one."""
