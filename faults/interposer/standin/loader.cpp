// Loads the client with its NCCL as Python loads an extension module: late, and for itself alone.
#include <dlfcn.h>

#include <cstdio>

int main(int argc, char** argv) {
  void* plugin = argc > 1 ? ::dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
  void* entry = plugin ? ::dlsym(plugin, "run_client") : nullptr;
  if (!entry) {
    std::fprintf(stderr, "loader: %s\n", ::dlerror());
    return 2;
  }
  return reinterpret_cast<int (*)(int, char**)>(entry)(argc - 1, argv + 1);
}
