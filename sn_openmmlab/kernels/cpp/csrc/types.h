// From torch's types to those of the loops.

#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <type_traits>

#include "loops.h"

namespace sn_openmmlab {

using MaybeTensor = std::optional<at::Tensor>;

[[noreturn]] inline void refuse(at::ScalarType type) {
  TORCH_CHECK_TYPE(false, "the C++ kernels take float32, float64, float16 and bfloat16, not ",
                   type);
}

inline at::ScalarType statistics_type(at::ScalarType type) {
  return type == at::kDouble ? at::kDouble : at::kFloat;
}

// Call `work` with a number of the type in which the statistics of an input of `type` are kept.
template <class Work>
void for_statistics(at::ScalarType type, const Work& work) {
  if (type == at::kDouble) return work(double{});
  if (type == at::kFloat || type == at::kHalf || type == at::kBFloat16) return work(float{});
  refuse(type);
}

// Call `work` with a number of the type that the loops have for `type`, whose statistics are A.
template <class A, class Work>
void for_numbers(at::ScalarType type, const Work& work) {
  if constexpr (std::is_same_v<A, double>) {
    if (type == at::kDouble) return work(double{});
  } else {
    if (type == at::kFloat) return work(float{});
    if (type == at::kHalf) return work(Half{});
    if (type == at::kBFloat16) return work(BFloat16{});
  }
  refuse(type);
}

// The numbers of a tensor whose type is known.
template <class T>
T* data(const at::Tensor& tensor) {
  return static_cast<T*>(tensor.data_ptr());
}

// Raise ValueError unless a parameter has one number per channel.
inline void check_vector(const char* name, const at::Tensor& vector, std::int64_t channels) {
  TORCH_CHECK_VALUE(vector.dim() == 1 && vector.size(0) == channels, name,
                    " must have one number for each of the ", channels,
                    " channels of the input, but its shape is ", vector.sizes(), ".");
}

// A small tensor in the type of the tables, one number after the other; or none.
template <class A>
class Table {
 public:
  explicit Table(const MaybeTensor& tensor) {
    if (!tensor.has_value() || !tensor->defined()) return;
    constexpr auto type = std::is_same_v<A, double> ? at::kDouble : at::kFloat;
    held_ = tensor->to(type).contiguous();
    data_ = data<A>(held_);
  }

  // Return the numbers, or a null pointer.
  const A* get() const { return data_; }

 private:
  at::Tensor held_;
  const A* data_ = nullptr;
};

// Return a parameter of C numbers, or none; raise ValueError if it is of another size.
template <class A>
Table<A> vector_of(const char* name, const MaybeTensor& vector, std::int64_t channels) {
  if (vector.has_value() && vector->defined()) check_vector(name, *vector, channels);
  return Table<A>(vector);
}

}  // namespace sn_openmmlab
