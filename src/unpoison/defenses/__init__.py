"""One file per paper, each like its method section; Guard in a folder of its own."""
