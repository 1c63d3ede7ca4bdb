#include <millrace/task.h>

#include <millrace/shard.h>

namespace millrace {

void CancelScope::Waiter::unlink() noexcept {
  if (!scope_) return;
  if (previous_) {
    previous_->next_ = next_;
  } else {
    scope_->first_ = next_;
  }
  if (next_) next_->previous_ = previous_;
  scope_ = nullptr;
  previous_ = next_ = nullptr;
}

class CancelScope::Link final : public CancelScope::Waiter {
 public:
  explicit Link(CancelScope& child) : child_(child) {}

 private:
  void on_cancel() noexcept override { child_.cancel(); }
  CancelScope& child_;
};

CancelScope::CancelScope(CancelScope* parent) {
  if (!parent) return;
  link_ = std::make_unique<Link>(*this);
  parent->add(*link_);
}

CancelScope::~CancelScope() {
  while (first_) first_->unlink();
}

void CancelScope::cancel() noexcept {
  cancelled_ = true;
  while (first_) {
    auto* waiter = first_;
    waiter->unlink();
    waiter->on_cancel();
  }
}

void CancelScope::add(Waiter& waiter) noexcept {
  if (cancelled_) {
    waiter.on_cancel();
    return;
  }
  waiter.scope_ = this;
  waiter.next_ = first_;
  if (first_) first_->previous_ = &waiter;
  first_ = &waiter;
}

Error detail::error_of(std::exception_ptr exception) noexcept {
  try {
    std::rethrow_exception(std::move(exception));
  } catch (const std::exception& e) {
    return Error{Errc::internal, std::string("exception: ") + e.what()};
  } catch (...) {
    return Error{Errc::internal, "exception of an unknown type"};
  }
}

void detail::resume_on(Shard& shard, std::coroutine_handle<> waiting) {
  shard.resume_soon(waiting);
}

}  // namespace millrace
