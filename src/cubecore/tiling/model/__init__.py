"""Records of tiling: the problem, TCubeTiling, buffer budgets, the core grid."""
