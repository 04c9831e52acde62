// The op in four stages, between which the processes of SyncSN exchange what 'bn' needs; see
// kernels/contract.py.

#pragma once

#include <tuple>

#include "layout.h"
#include "tables.h"
#include "types.h"

namespace sn_openmmlab {

// Return mean and variance of the instances, (2, N, C), and of 'bn', (2, C).
std::tuple<at::Tensor, at::Tensor> observe(const at::Tensor& x, std::int64_t correction,
                                           bool instance_variance);

// Return y, and the mixed mean and 1 / sqrt(mixed variance + eps), (2, N, C).
std::tuple<at::Tensor, at::Tensor> normalize(const at::Tensor& x, const at::Tensor& instances,
                                             const MaybeTensor& batch, const MaybeTensor& weight,
                                             const MaybeTensor& bias,
                                             const at::Tensor& mean_weight,
                                             const at::Tensor& var_weight, at::IntArrayRef scopes,
                                             std::int64_t num_groups, double eps);

// Return the sums of dy and of dy * (x - centre) over the positions, (2, N, C); and (4, C): the
// gradients of weight and bias, and those of both mixes summed over the samples.
std::tuple<at::Tensor, at::Tensor> sum_gradients(const at::Tensor& dy, const at::Tensor& x,
                                                 const at::Tensor& mixed,
                                                 const MaybeTensor& weight);

// Return the gradients of x (undefined unless wanted), mean_weight and var_weight.
std::tuple<at::Tensor, at::Tensor, at::Tensor> input_gradients(
    const at::Tensor& dy, const at::Tensor& x, const at::Tensor& sums, const at::Tensor& instances,
    const at::Tensor& mixed, const MaybeTensor& batch, const MaybeTensor& batch_gradients,
    const MaybeTensor& weight, const at::Tensor& mean_weight, const at::Tensor& var_weight,
    at::IntArrayRef scopes, std::int64_t num_groups, std::int64_t correction, bool wants_x);

}  // namespace sn_openmmlab
