"""From a product and a chip to ranked tilings: problem, struct, rules, cost, solver."""
