#include "kernel/env/descriptor.h"

#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

namespace millrace::kernel {

namespace asio = boost::asio;

namespace {

// `asked` stays true when the waiter gives up: the next one is served by the same question.
struct Direction {
  bool asked = false;
  Resolver<> waiter;
};

}  // namespace

struct Descriptor::Watch final : LoopWait, std::enable_shared_from_this<Watch> {
  Watch(EventLoop& owner, int number) : loop(owner), events(owner.context(), number) {
    loop.add(*this);
  }
  ~Watch() override { loop.remove(*this); }

  Pending<> wait(Direction& direction, asio::posix::descriptor_base::wait_type what) {
    MR_ASSERT(!direction.waiter || direction.waiter.abandoned());
    auto [resolver, pending] = make_pending<>();
    direction.waiter = std::move(resolver);
    if (!std::exchange(direction.asked, true)) {
      events.async_wait(what, [self = shared_from_this(), &direction](auto) {
        direction.asked = false;
        if (direction.waiter) direction.waiter.resolve();
      });
    }
    return std::move(pending);
  }

  void end(const Error& error) {
    for (auto* direction : {&reading, &writing}) {
      if (direction->waiter) direction->waiter.resolve(error);
    }
  }

  void cancel_waits() noexcept override {
    end({Errc::cancelled, "the environment is stopping"});
    events.cancel();
  }

  EventLoop& loop;
  asio::posix::stream_descriptor events;
  Direction reading;
  Direction writing;
};

Descriptor::Descriptor(EventLoop& loop, int number) : loop_(loop), number_(number) {
  MR_ASSERT(number >= 0);
}

Descriptor::~Descriptor() { close(); }

Descriptor::Watch& Descriptor::watch() {
  MR_ASSERT(loop_.is_current());
  if (!watch_) watch_ = std::make_shared<Watch>(loop_, number_);
  return *watch_;
}

Pending<> Descriptor::readable() {
  if (closed()) return Pending<>::ready(Error{Errc::closed, "closed"});
  return watch().wait(watch_->reading, asio::posix::descriptor_base::wait_read);
}

Pending<> Descriptor::writable() {
  if (closed()) return Pending<>::ready(Error{Errc::closed, "closed"});
  return watch().wait(watch_->writing, asio::posix::descriptor_base::wait_write);
}

void Descriptor::close() noexcept {
  if (closed()) return;
  const int number = std::exchange(number_, -1);
  if (!watch_) {
    ::close(number);
    return;
  }
  MR_ASSERT(loop_.is_current());
  boost::system::error_code failure;
  failure = watch_->events.close(failure);  // the number is gone, whatever close(2) says
  watch_->end({Errc::closed, "closed"});
  watch_.reset();
}

}  // namespace millrace::kernel
