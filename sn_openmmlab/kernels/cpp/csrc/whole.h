// The op in one call per direction, for a process alone.

#pragma once

#include <array>
#include <tuple>

#include "types.h"

namespace sn_openmmlab {

// Return y; the tables that backward reads, (4, N, C): instances and mixed; and mean and variance
// of 'bn', (2, C), or (2, 0) where it is not mixed.
//
// In training the moments of 'bn' are those of this batch, and the running statistics, if there are
// any, move towards them by a share of `momentum`, or of one over the number of batches where it is
// none. Otherwise the running statistics are the moments of 'bn', where there are any.
std::tuple<at::Tensor, at::Tensor, at::Tensor> forward(
    const at::Tensor& x, const MaybeTensor& weight, const MaybeTensor& bias,
    const at::Tensor& mean_weight, const at::Tensor& var_weight, const MaybeTensor& running_mean,
    const MaybeTensor& running_var, const MaybeTensor& num_batches, std::optional<double> momentum,
    bool training, at::IntArrayRef scopes, std::int64_t num_groups, std::int64_t correction,
    double eps, bool instance_variance);

// Return the gradients of x, weight, bias, mean_weight and var_weight; undefined unless wanted.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> backward(
    const at::Tensor& dy, const at::Tensor& x, const MaybeTensor& weight, const MaybeTensor& bias,
    const at::Tensor& mean_weight, const at::Tensor& var_weight, const at::Tensor& tables,
    const at::Tensor& batch, bool batch_is_given, at::IntArrayRef scopes, std::int64_t num_groups,
    std::int64_t correction, std::array<bool, 5> wanted);

}  // namespace sn_openmmlab
