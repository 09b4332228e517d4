// Libraries of the user's: loaded as they are, or as a copy with variables of its own.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace {

std::unordered_map<const void*, std::string> copied_from;  // by where a copy lies

// The file that a library was made as; a copy lies in memory.
const char* file_of(const Dl_info& found) {
  auto copy = copied_from.find(found.dli_fbase);
  return copy == copied_from.end() ? found.dli_fname : copy->second.c_str();
}

#if defined(__linux__)

std::string copy_of(const char* path) {
  int from = open(path, O_RDONLY | O_CLOEXEC), to = memfd_create("kernel", MFD_CLOEXEC);
  if (to < 0) to = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0700);  // a box has no memfd
  std::vector<char> part(1 << 16);
  for (ssize_t size; (size = read(from, part.data(), part.size())) > 0;)
    if (write(to, part.data(), static_cast<size_t>(size)) != size) break;
  close(from);
  return "/proc/self/fd/" + std::to_string(to);
}

#else

std::string copy_of(const char* path) { return path; }

#endif

// Returns the address of a library's symbol; null with dlerror's sentence.
void* loaded(const char* path, const char* symbol, bool copies) {
  const std::string from = copies ? copy_of(path) : path;
  void* library = dlopen(from.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* found = library == nullptr ? nullptr : dlsym(library, symbol);
  Dl_info where = {};
  if (copies && found != nullptr && dladdr(found, &where) != 0) copied_from[where.dli_fbase] = path;
  return found;
}

}  // namespace
