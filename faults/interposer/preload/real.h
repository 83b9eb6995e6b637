// Finding the real functions behind the wrapped ones: the next library in the search order, or, where the program
// loaded NCCL or the CUDA runtime on its own (as Python does), the loaded library of that name. FIREDRILL_NCCL_LIBRARY
// and FIREDRILL_CUDART_LIBRARY name a file instead. Threads: any. A function is looked up once, at its first use, which
// is not safe inside a signal handler.
#pragma once

#include <atomic>

namespace firedrill::interposer {

enum class Library : unsigned char { nccl, cudart };

// nullptr if no such function is loaded.
void* find_real(const char* name, Library library) noexcept;
// Says on standard error, once a name, that the program called what is nowhere to be found.
void report_missing(const char* name, Library library) noexcept;

template <class Function>
class Real {
 public:
  constexpr Real(const char* name, Library library) : name_(name), library_(library) {}

  Function* get() noexcept {
    void* found = found_.load(std::memory_order_acquire);
    if (!found) [[unlikely]] {
      found = find_real(name_, library_);
      found_.store(found, std::memory_order_release);
      if (!found && !reported_.exchange(true)) report_missing(name_, library_);
    }
    return reinterpret_cast<Function*>(found);
  }

 private:
  const char* name_;
  Library library_;
  std::atomic<void*> found_{nullptr};
  std::atomic<bool> reported_{false};
};

}  // namespace firedrill::interposer
