// The process that a user's code runs in: the runtime's library and nothing else, until it is told.

#include <dlfcn.h>
#include <stdio.h>

int main(int count, char** words) {
  void* library = count < 2 ? nullptr : dlopen(words[1], RTLD_NOW | RTLD_GLOBAL);
  void* found = library == nullptr ? nullptr : dlsym(library, "cubecore_main");
  if (found == nullptr) {
    const char* reason = dlerror();
    fprintf(stderr, "%s\n", reason == nullptr ? "no runtime is named" : reason);
    return 1;
  }
  return reinterpret_cast<int (*)(char**)>(found)(words + 2);
}
