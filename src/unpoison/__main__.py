"""`python -m unpoison` is the command `unpoison`, for machines whose PATH does not lead to it."""

from unpoison.cli import main

if __name__ == "__main__":
    main()
