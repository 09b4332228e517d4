// Who accessed each byte last: of UB within a block, of global memory within a launch.
//
// A cell stands for four bytes, and for one in pages of which a part of a word was accessed. It
// holds the last write and the last read; all records are stamped, so that nothing is ever cleared.
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <vector>

namespace {

constexpr uint32_t PAGE_BITS = 12, PAGE_BYTES = 1u << PAGE_BITS;

// One access: `stamp` of the launch, `epoch` of the block's barriers, the thread within the launch,
// and the bytes of its cell.
struct Touch {
  uint64_t stamp : 18, epoch : 12, thread : 27, mask : 4, atomic : 1, threads : 1, blocks : 1;
  bool is(uint64_t of) const { return stamp == of; }
};
static_assert(sizeof(Touch) == 8, "cells are many");

// Atomic: of an atomic or volatile access. Threads, blocks: others of the block and epoch, or of
// other blocks, have read the cell as well.
struct Cell {
  Touch write, read;
  uint32_t write_code, read_code;  // where in the library
};

struct Page {
  bool by_bytes = false;
  Cell* cells = nullptr;

  Cell* at(uint32_t byte) const { return cells + (by_bytes ? byte : byte / 4); }
  void open() {
    if (cells == nullptr) cells = static_cast<Cell*>(calloc(PAGE_BYTES / 4, sizeof(Cell)));
  }
  // Gives each byte a cell of its own.
  void refine() {
    if (by_bytes) return;
    Cell* wide = cells;
    cells = static_cast<Cell*>(calloc(PAGE_BYTES, sizeof(Cell)));
    for (uint32_t byte = 0; wide != nullptr && byte < PAGE_BYTES; ++byte) {
      Cell cell = wide[byte / 4];
      const uint64_t bit = 1u << byte % 4;
      cell.write.mask = (cell.write.mask & bit) != 0 ? 1 : 0;
      cell.read.mask = (cell.read.mask & bit) != 0 ? 1 : 0;
      cells[byte] = cell;
    }
    free(wide);
    by_bytes = true;
  }
};

// Bytes that are known to be written, one bit each; none kept while all or none are. Unknown: until
// they are asked for.
struct Written {
  enum State : uint8_t { NONE, ALL, SOME, UNKNOWN } state = ALL;
  std::vector<uint8_t> bits;
  bool changed = false;

  void begin(State as, uint64_t bytes) {
    state = as, changed = false;
    bits.clear();
    if (state != ALL) bits.assign((bytes + 7) / 8 + 8, 0);
  }
  bool has(uint64_t at, uint32_t bytes) const {
    if (state == ALL) return true;
    uint64_t word = 0;
    memcpy(&word, bits.data() + at / 8, sizeof(word));
    const uint64_t wanted = bytes >= 56 ? ~0ull : (1ull << bytes) - 1;
    return (word >> at % 8 & wanted) == wanted;
  }
  void add(uint64_t at, uint32_t bytes) {
    if (state == ALL) return;
    changed = true;
    uint64_t word = 0;
    memcpy(&word, bits.data() + at / 8, sizeof(word));
    word |= (bytes >= 56 ? ~0ull : (1ull << bytes) - 1) << at % 8;
    memcpy(bits.data() + at / 8, &word, sizeof(word));
  }
};

// A part of an array, by which its written bytes are asked for: threads touch few of large ones.
constexpr uint32_t MARKS_BITS = 18, MARKS_BYTES = 1u << MARKS_BITS;

// An array of global memory, or UB: host addresses.
struct Region {
  uintptr_t start = 0, end = 0;
  std::vector<Page> pages;
  Written written;             // of UB
  std::vector<Written> parts;  // of an array; none while all of it is written

  Page& page(uint64_t at) {
    if (pages.empty()) pages.resize((end - start + PAGE_BYTES - 1) / PAGE_BYTES);
    return pages[at >> PAGE_BITS];
  }
  void drop() {
    for (Page& each : pages) free(each.cells);
    pages.clear();
  }
};

}  // namespace
