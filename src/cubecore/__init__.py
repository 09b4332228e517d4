"""cubecore: plan, check, execute and time matrix kernels for the Ascend AI Core."""

__version__ = "0.1.0"
