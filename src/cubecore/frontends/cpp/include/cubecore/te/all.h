// The tensor API. Page: "data_structure_TensorAPI" and "矩阵计算（TensorAPI）".
#pragma once

#include "cubecore/te/product.h"
