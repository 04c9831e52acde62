#include "layout.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace sn_openmmlab {

namespace {

// Whether dimensions, from the innermost one, lie side by side from a stride on, which is moved on.
bool are_dense(const at::Tensor& x, const std::vector<std::int64_t>& dims, std::int64_t* stride) {
  for (const std::int64_t d : dims) {
    if (x.size(d) != 1 && x.stride(d) != *stride) return false;
    *stride *= x.size(d);
  }
  return true;
}

std::optional<Order> order_of(const at::Tensor& x) {
  std::vector<std::int64_t> positions;
  for (std::int64_t d = x.dim() - 1; d >= 2; --d) positions.push_back(d);
  std::int64_t stride = 1;
  // With one position both hold, and panels have the longer runs.
  if (x.size(1) > 1 && are_dense(x, {1}, &stride) && are_dense(x, positions, &stride) &&
      are_dense(x, {0}, &stride)) {
    return Order::kPanels;
  }
  std::stable_sort(positions.begin(), positions.end(),
                   [&](std::int64_t a, std::int64_t b) { return x.stride(a) < x.stride(b); });
  stride = 1;
  if (are_dense(x, positions, &stride) && are_dense(x, {1, 0}, &stride)) return Order::kRows;
  return std::nullopt;
}

bool have_same_strides(const at::Tensor& x, const at::Tensor& y) {
  for (std::int64_t d = 0; d < x.dim(); ++d) {
    if (x.size(d) != 1 && x.stride(d) != y.stride(d)) return false;
  }
  return true;
}

at::Tensor empty_with_strides(const at::Tensor& x, const at::Tensor& like) {
  return at::empty_strided(like.sizes(), like.strides(), x.options());
}

}  // namespace

Extent extent_of(const at::Tensor& x) {
  std::int64_t positions = 1;
  for (std::int64_t d = 2; d < x.dim(); ++d) positions *= x.size(d);
  return {x.size(0), x.size(1), positions};
}

Arranged arrange(const at::Tensor& x) {
  if (const auto order = order_of(x)) return {x, *order};
  const at::Tensor dense = at::empty_like(x);
  if (const auto order = order_of(dense)) return {dense.copy_(x), *order};
  const at::Tensor copy = at::empty_like(x, at::MemoryFormat::Contiguous).copy_(x);
  return {copy, *order_of(copy)};
}

at::Tensor with_strides_of(const at::Tensor& x, const at::Tensor& like) {
  return have_same_strides(x, like) ? x : empty_with_strides(x, like).copy_(x);
}

Output::Output(const at::Tensor& x, const at::Tensor& arranged)
    : result(at::empty_like(x)),
      written(have_same_strides(result, arranged) ? result : empty_with_strides(x, arranged)) {}

at::Tensor Output::finish() const {
  if (!written.is_same(result)) result.copy_(written);
  return result;
}

}  // namespace sn_openmmlab
