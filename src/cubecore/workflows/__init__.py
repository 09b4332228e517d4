"""What the command line and the Python API offer: frozen records in, frozen records out."""
