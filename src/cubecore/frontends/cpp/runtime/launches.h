// The launches of a program, by their names: a mix kernel's parts lie in two libraries of the same
// files, and each has the launch.
#pragma once

#include <stdint.h>
#include <string.h>

#include <vector>

namespace {

using OnLaunch = int (*)(const uint64_t*);

struct KnownLaunch {
  const char* key;
  OnLaunch entry;
};

std::vector<KnownLaunch> launches;
size_t first_of_other_part = SIZE_MAX;

}  // namespace

extern "C" {

bool cubecore_known(const char* key, int (*entry)(const uint64_t*)) {
  launches.push_back(KnownLaunch{key, entry});
  return true;
}

// Launches known from here on are those of the library of the other part.
void cubecore_other_part() { first_of_other_part = launches.size(); }

// The same launch in the library of the other part: that with its name, the n-th of it; null if
// there is none.
OnLaunch cubecore_in_other_part(OnLaunch entry) {
  size_t own = 0;
  while (own < first_of_other_part && launches[own].entry != entry) ++own;
  if (own >= first_of_other_part) return nullptr;
  const char* key = launches[own].key;
  auto same = [&](size_t n) { return strcmp(launches[n].key, key) == 0; };
  size_t before = 0;
  for (size_t n = 0; n < own; ++n) before += same(n);
  for (size_t n = first_of_other_part; n < launches.size(); ++n)
    if (same(n) && before-- == 0) return launches[n].entry;
  return nullptr;
}

}  // extern "C"
