// Memory that ends right before a page that may not be touched: reading or writing one byte too far
// stops the test.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

namespace winnow {

template <class T>
class GuardedBuffer {
 public:
  explicit GuardedBuffer(size_t size) : size_(size) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t usable = (size * sizeof(T) + page - 1) / page * page;
    mapped_bytes_ = usable + page;
    base_ = static_cast<std::byte*>(
        mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED || mprotect(base_ + usable, page, PROT_NONE) != 0)
      throw std::bad_alloc();
    data_ = reinterpret_cast<T*>(base_ + usable - size * sizeof(T));
  }
  ~GuardedBuffer() { munmap(base_, mapped_bytes_); }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  std::span<T> span() { return {data_, size_}; }

 private:
  size_t size_;
  size_t mapped_bytes_ = 0;
  std::byte* base_ = nullptr;
  T* data_ = nullptr;
};

}  // namespace winnow
