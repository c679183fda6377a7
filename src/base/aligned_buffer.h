// AlignedBuffer<T>: an owning, 64-byte aligned array of plain values that only grows; scratch
// memory that is sized once and then reused without allocation.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

namespace winnow {

inline constexpr size_t kCacheLineBytes = 64;

template <class T>
class AlignedBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t size) { ensure(size); }

  // Makes room for `size` values and returns the buffer. Growing discards the contents.
  T* ensure(size_t size) {
    if (size > capacity_) {
      const size_t bytes =
          (size * sizeof(T) + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
      data_.reset(static_cast<T*>(std::aligned_alloc(kCacheLineBytes, bytes)));
      if (data_ == nullptr) throw std::bad_alloc();
      capacity_ = size;
    }
    return data_.get();
  }
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  size_t capacity() const { return capacity_; }
  size_t capacity_bytes() const { return capacity_ * sizeof(T); }

 private:
  struct Free {
    void operator()(T* pointer) const { std::free(pointer); }
  };
  std::unique_ptr<T[], Free> data_;
  size_t capacity_ = 0;
};

}  // namespace winnow
