// How the numbers of a tensor of shape (N, C, *) lie in memory.

#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sn_openmmlab {

enum class Order {
  kRows,    // the positions of a channel side by side, in any order: contiguous, for one
  kPanels,  // the channels of a position side by side: channels_last
};

// The sizes of a tensor of shape (N, C, *).
struct Extent {
  std::int64_t samples;
  std::int64_t channels;
  std::int64_t positions;
};

Extent extent_of(const at::Tensor& x);

// A tensor whose memory the loops can visit.
struct Arranged {
  at::Tensor x;
  Order order;
};

// Return `x` itself if its order is known, else a copy.
Arranged arrange(const at::Tensor& x);

// Return a tensor of the same shape with the strides of `like`, itself or a copy.
at::Tensor with_strides_of(const at::Tensor& x, const at::Tensor& like);

// An output like `x`, and the memory that the loops write, with the strides of an arranged tensor.
struct Output {
  Output(const at::Tensor& x, const at::Tensor& arranged);

  // Return the output, once `written` is filled.
  at::Tensor finish() const;

  at::Tensor result;
  at::Tensor written;
};

}  // namespace sn_openmmlab
