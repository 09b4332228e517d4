"""Instructions, declared once; programs of them as trees; static checks."""
