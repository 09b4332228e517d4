"""Register instructions of architecture 3510, and vector functions, which are programs of them.

A vector function (VF) is one instruction of pipe V toward the rest of the core: it holds the
register instructions that its body issued (`program`), which are declared once each by family.
"""
