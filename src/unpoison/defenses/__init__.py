"""One file per paper. Each reads like the method section: it names the steps, the kernels do them."""
