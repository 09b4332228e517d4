"""Functions that threads run (SIMT): what they read and wrote, as instructions of pipe V."""
