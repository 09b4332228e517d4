"""Memories of a core: buffers, element access, footprints."""
