"""The host side of TIK: the Tik object, kernels it builds, the modules that scripts import."""
