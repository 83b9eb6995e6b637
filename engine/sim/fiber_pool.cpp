#include "engine/sim/fiber_pool.h"

#include <boost/context/protected_fixedsize_stack.hpp>
#include <utility>

#include "engine/base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace firedrill::sim {
namespace {

// Boost's stack with a protected page, but for telling the fiber where it lies.
class StackAllocator {
 public:
  StackAllocator(std::size_t size, Fiber& fiber) : inner_(size), fiber_(&fiber) {}
  boost::context::stack_context allocate() {
    boost::context::stack_context stack = inner_.allocate();
    const std::size_t guard = boost::context::stack_traits::page_size();
    fiber_->stack_bottom = static_cast<const std::byte*>(stack.sp) - stack.size + guard;
    fiber_->stack_size = stack.size - guard;
    return stack;
  }
  void deallocate(boost::context::stack_context& stack) noexcept { inner_.deallocate(stack); }

 private:
  boost::context::protected_fixedsize_stack inner_;
  Fiber* fiber_;
};

}  // namespace

FiberPool::FiberPool(const FiberPoolOptions& options) : options_(options) {
  FD_CHECK(options.stack_size >= 16 * 1024 && options.stack_size <= 1024 * 1024, "a stack of {} bytes",
           options.stack_size);
}

FiberPool::~FiberPool() {
  for (Fiber& fiber : fibers_) {
    if (!fiber.context || fiber.state != FiberState::idle) continue;
    fiber.quits = true;
    switch_to(fiber);
  }
}

Fiber& FiberPool::take() {
  if (!idle_.empty()) {
    Fiber& fiber = *idle_.back();
    idle_.pop_back();
    return fiber;
  }
  Fiber& fiber = fibers_.emplace_back();
  start(fiber);
  return fiber;
}

void FiberPool::start(Fiber& fiber) {
  fiber.context = boost::context::fiber(std::allocator_arg, StackAllocator(options_.stack_size, fiber),
                                        [this, &fiber](boost::context::fiber&& previous) {
                                          came_from_->context = std::move(previous);
                                          after_switch(fiber);
                                          loop(fiber);
                                          came_from_ = &fiber;
                                          running_ = &outside_;
                                          before_switch(fiber, outside_, true);
                                          return std::move(outside_.context);
                                        });
}

void FiberPool::loop(Fiber& self) {
  while (!self.quits) {
    self.task();
    self.task = nullptr;  // what it holds goes here, on its own stack
    self.state = FiberState::idle;
    idle_.push_back(&self);
    task_ended_(self);
  }
}

void FiberPool::switch_to(Fiber& to) {
  Fiber& from = *running_;
  before_switch(from, to, false);
  came_from_ = &from;
  running_ = &to;
  boost::context::fiber previous = std::move(to.context).resume();
  came_from_->context = std::move(previous);
  after_switch(from);
}

#if defined(__SANITIZE_ADDRESS__)
void FiberPool::before_switch(Fiber& from, const Fiber& to, bool ends) {
  __sanitizer_start_switch_fiber(ends ? nullptr : &from.fake_stack, to.stack_bottom, to.stack_size);
}
void FiberPool::after_switch(Fiber& self) {
  const void* bottom = nullptr;
  std::size_t size = 0;
  __sanitizer_finish_switch_fiber(self.fake_stack, &bottom, &size);
  if (came_from_ == &outside_) {
    outside_.stack_bottom = bottom;
    outside_.stack_size = size;
  }
}
#else
void FiberPool::before_switch(Fiber&, const Fiber&, bool) {}
void FiberPool::after_switch(Fiber&) {}
#endif

}  // namespace firedrill::sim
