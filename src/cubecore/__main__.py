"""python -m cubecore."""

from cubecore.cli import main

if __name__ == "__main__":
    main()
