// What the stages and the whole op share: the steps between arranged tensors and raw tables.

#pragma once

#include <memory>

#include "layout.h"
#include "passes.h"
#include "tables.h"
#include "types.h"

namespace sn_openmmlab {

inline Shape shape_of(const at::Tensor& x) { return {x.size(0), x.size(1)}; }

// Fill the instances, (2, N, C).
template <class A>
void fill_instances(const Arranged& x, std::int64_t correction, bool instance_variance,
                    A* instances);

// Return y; fill the mixed mean and 1 / sqrt(mixed variance + eps), (2, N, C).
template <class A>
at::Tensor fill_output(const at::Tensor& x, const Arranged& arranged, const A* instances,
                       const A* batch, const A* weight, const A* bias, const Ratios& ratios,
                       const Mixture& mixture, A* mixed);

// Fill the sums, (2, N, C), and what they say of the channels, (4, C).
template <class A>
void fill_sums(const at::Tensor& dy, const Arranged& x, const A* mixed, const A* weight, A* sums,
               A* channels);

// Return the gradient of x, undefined unless wanted, and fill those of the control parameters.
template <class A>
at::Tensor fill_gradients(const at::Tensor& dy, const at::Tensor& x, const Arranged& arranged,
                          const Backward<A>& given, const Ratios& ratios, const Mixture& mixture,
                          bool wants_x, ControlGradients* controls);

// Return a gradient in the shape and type of its control parameter.
at::Tensor like_control(const std::vector<double>& gradient, const at::Tensor& control);

}  // namespace sn_openmmlab
