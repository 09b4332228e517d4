"""A function of another module that declares an array for a kernel."""


def declare(core, count):
    return core.ubuf("half", count)
