"""python -m cubecore."""

from cubecore.cli.entry import main

if __name__ == "__main__":
    main(f"python -m {__package__}" if __package__ else None)
