// Questions to Python, and its answers: one message each way, by two pipes.
//
// The process does what it is told by a message (serve.h) and answers each with one. A core that
// asks waits on its own stack for its answer; other cores run meanwhile, perhaps.
#pragma once

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "recording/speculative_reads.h"

namespace {

constexpr size_t STACK_BYTES = 8 << 20, GUARD_BYTES = 1 << 16;

struct Pipes {
  int commands = -1, answers = -1;
  bool forked = false;  // in a copy of this process, whose messages nobody reads
} pipes;

[[noreturn]] void end(int number);

// Goes on behind a call on a pipe that failed, if it may be made again: the user's code has the
// pipes, too.
void again(int pipe, short ready) {
  pollfd waited = {pipe, ready, 0};
  if (errno == EAGAIN && poll(&waited, 1, -1) > 0) return;
  if (errno != EINTR) end(CLOSED);
}

// A message that is written.
class Message {
 public:
  Message(uint32_t what, uint32_t core) : what_(what), core_(core) {}

  Message& word(uint64_t value) { return raw(&value, sizeof(value)); }
  Message& raw(const void* from, size_t size) {
    bytes_.append(static_cast<const char*>(from), size);
    return *this;
  }
  Message& text(const char* text) {
    if (text == nullptr) return word(~0ull);
    size_t size = strlen(text);
    return word(size).raw(text, size);
  }
  Message& where(const Where* at) { return text(at->file).text(at->function).word(at->line); }
  // What was recorded goes with it.
  void send() {
    if (pipes.forked) _exit(0);
    uint32_t size = static_cast<uint32_t>(bytes_.size() - sizeof(Head));
    const Head head = {MAGIC,         size, what_, core_, recorded.count, recorded.addresses,
                       recorded.reads};
    recorded = {};
    memcpy(bytes_.data(), &head, sizeof(Head));
    for (size_t at = 0; at < bytes_.size();) {
      ssize_t done = write(pipes.answers, bytes_.data() + at, bytes_.size() - at);
      if (done > 0) at += static_cast<size_t>(done);
      if (done < 0) again(pipes.answers, POLLOUT);
    }
  }

 private:
  uint32_t what_, core_;
  std::string bytes_ = std::string(sizeof(Head), '\0');
};

// The message that was read last.
struct Command {
  std::vector<char> bytes = std::vector<char>(1 << 16);
  size_t at = 0;

  const char* raw(size_t size) {
    at += size;
    return bytes.data() + at - size;
  }
  uint64_t word() {
    uint64_t value = 0;
    memcpy(&value, raw(sizeof(value)), sizeof(value));
    return value;
  }
  std::string text() {
    size_t size = word();
    return std::string(raw(size), size);
  }
  void read() {
    uint64_t size = sizeof(size);
    at = sizeof(size);
    for (size_t have = 0; have < size;) {
      ssize_t part = ::read(pipes.commands, bytes.data() + have, bytes.size() - have);
      if (part == 0) _exit(0);  // nobody wants anything any more
      if (part < 0) {
        again(pipes.commands, POLLIN);
        continue;
      }
      have += static_cast<size_t>(part);
      if (have < sizeof(size)) continue;
      memcpy(&size, bytes.data(), sizeof(size));
      if (size > bytes.size()) bytes.resize(size);
    }
  }
} command;

}  // namespace

// The stack that a core runs on, and where it stands there.
struct Stack {
  ucontext_t context;
  char* pages;
};

namespace {

std::vector<Stack*> free_stacks;
ucontext_t* scheduler = nullptr;  // where a core's question leads back to

Stack* stack_for_core() {
  if (!free_stacks.empty()) {
    Stack* held = free_stacks.back();
    free_stacks.pop_back();
    return held;
  }
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* pages = mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  mprotect(pages, GUARD_BYTES, PROT_NONE);
  return new Stack{{}, static_cast<char*>(pages)};
}

// Sends a core's question and returns its answer; the core goes on.
Command& asked(Core* core, Message& question) {
  ++core->questions;
  question.send();
  current = nullptr;
  swapcontext(&core->stack->context, scheduler);
  resume(core);
  return command;
}

// Hands over what was recorded; another core may run in between.
void hand_over(Core* core) {
  Message question(PAUSE, core->number);
  asked(core, question);
}

// A wait for other cores was recorded.
void at_wait(Core* core) {
  core->near.drop_all();
  if (ahead.bytes == 0) return hand_over(core);
  ahead.ran = core->ahead = true;
  guard_for(core);
}

}  // namespace
