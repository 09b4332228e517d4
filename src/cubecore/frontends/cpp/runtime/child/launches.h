// The launches of a program, by their names: a mix kernel's parts lie in two libraries of the same
// files, and each has the launch.
#pragma once

#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <vector>

namespace {

using OnLaunch = void (*)(const uint64_t*);

struct KnownLaunch {
  const char* key;
  OnLaunch entry;
};

std::vector<KnownLaunch> launches;
size_t first_of_other_part = SIZE_MAX;

// The same launch in the library of the other part: that with its name, the n-th of it; null if
// there is none.
OnLaunch in_other_part(uint64_t entry) {
  size_t own = 0, end = std::min(first_of_other_part, launches.size());
  while (own < end && reinterpret_cast<uint64_t>(launches[own].entry) != entry) ++own;
  if (own == end) return nullptr;
  const char* key = launches[own].key;
  auto same = [&](size_t n) { return strcmp(launches[n].key, key) == 0; };
  size_t before = 0;
  for (size_t n = 0; n < own; ++n) before += same(n);
  for (size_t n = first_of_other_part; n < launches.size(); ++n)
    if (same(n) && before-- == 0) return launches[n].entry;
  return nullptr;
}

}  // namespace

extern "C" {

bool cubecore_known(const char* key, void (*entry)(const uint64_t*)) {
  launches.push_back(KnownLaunch{key, entry});
  return true;
}

}  // extern "C"
