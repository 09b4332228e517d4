"""python -m cubecore."""

from cubecore.cli.commands import main

if __name__ == "__main__":
    main()
