#include "kernel/env/descriptor.h"

#include <sys/epoll.h>
#include <unistd.h>

namespace millrace::kernel {

namespace {

// Told whether they are asked for or not: a read and a write then fail or end, which is no waiting.
constexpr std::uint32_t ends = EPOLLERR | EPOLLHUP;

bool waits(const Resolver<>& waiter) { return waiter && !waiter.abandoned(); }

}  // namespace

Descriptor::Descriptor(EventLoop& loop, int number) : loop_(loop), number_(number) {
  MR_ASSERT(number >= 0);
}

Descriptor::~Descriptor() { close(); }

Pending<> Descriptor::readable() { return wait(reader_, EPOLLIN); }

Pending<> Descriptor::writable() { return wait(writer_, EPOLLOUT); }

Pending<> Descriptor::wait(Resolver<>& waiter, std::uint32_t events) {
  if (closed()) return Pending<>::ready(Error{Errc::closed, "closed"});
  MR_ASSERT(!waits(waiter));
  if ((watched_ & events) == 0) {
    auto watched = loop_.watch(number_, watched_ | events, *this);
    if (!watched) return Pending<>::ready(std::move(watched));
    watched_ |= events;
  }
  auto [resolver, pending] = make_pending<>();
  waiter = std::move(resolver);
  return std::move(pending);
}

void Descriptor::on_events(std::uint32_t events) noexcept {
  auto wanted = watched_;
  if ((events & (EPOLLIN | ends)) != 0) {
    if (waits(reader_)) {
      reader_.resolve();
    } else {
      wanted &= ~static_cast<std::uint32_t>(EPOLLIN);
    }
  }
  if ((events & (EPOLLOUT | ends)) != 0) {
    if (waits(writer_)) writer_.resolve();
    wanted &= ~static_cast<std::uint32_t>(EPOLLOUT);
  }
  if (wanted == watched_) return;
  const auto changed = loop_.watch(number_, wanted, *this);
  MR_ASSERT(changed.has_value());  // it is watched, and less is asked for
  watched_ = wanted;
}

void Descriptor::end(const Error& error) noexcept {
  for (auto* waiter : {&reader_, &writer_}) {
    if (*waiter) waiter->resolve(error);
  }
}

void Descriptor::cancel_waits() noexcept { end({Errc::cancelled, "the environment is stopping"}); }

void Descriptor::close() noexcept {
  if (closed()) return;
  if (watched_ != 0) {
    MR_ASSERT(loop_.is_current());
    loop_.forget(number_, *this);
    watched_ = 0;
  }
  ::close(std::exchange(number_, -1));  // the number is gone, whatever close(2) says
  end({Errc::closed, "closed"});
}

}  // namespace millrace::kernel
