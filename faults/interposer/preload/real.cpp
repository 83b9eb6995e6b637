#include "faults/interposer/preload/real.h"

#include <dlfcn.h>
#include <link.h>  // allowed: glibc's list of loaded libraries

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace firedrill::interposer {
namespace {

struct Search {
  const char* prefix;  // of the file's name
  char path[1024];
};

int look_at(dl_phdr_info* info, std::size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  const char* slash = std::strrchr(info->dlpi_name, '/');
  const char* name = slash ? slash + 1 : info->dlpi_name;
  if (std::strncmp(name, search->prefix, std::strlen(search->prefix)) != 0) return 0;
  std::snprintf(search->path, sizeof search->path, "%s", info->dlpi_name);
  return 1;
}

void* in_loaded_library(const char* name, const char* prefix) {
  Search search{.prefix = prefix, .path = {}};
  if (::dl_iterate_phdr(look_at, &search) == 0) return nullptr;
  void* library = ::dlopen(search.path, RTLD_LAZY | RTLD_NOLOAD);
  return library ? ::dlsym(library, name) : nullptr;
}

}  // namespace

void* find_real(const char* name, Library library) noexcept {
  const bool nccl = library == Library::nccl;
  const char* named = std::getenv(nccl ? "FIREDRILL_NCCL_LIBRARY" : "FIREDRILL_CUDART_LIBRARY");
  if (named && *named) {
    void* opened = ::dlopen(named, RTLD_LAZY | RTLD_LOCAL);
    return opened ? ::dlsym(opened, name) : nullptr;
  }
  if (void* next = ::dlsym(RTLD_NEXT, name)) return next;
  return in_loaded_library(name, nccl ? "libnccl.so" : "libcudart.so");
}

void report_missing(const char* name, Library library) noexcept {
  std::fprintf(stderr,
               "firedrill-nccl: the program called %s, and no loaded %s has it (remedy: name the library in %s)\n",
               name, library == Library::nccl ? "libnccl.so" : "libcudart.so",
               library == Library::nccl ? "FIREDRILL_NCCL_LIBRARY" : "FIREDRILL_CUDART_LIBRARY");
}

}  // namespace firedrill::interposer
