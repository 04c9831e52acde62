// The passes over the big tensors, in parallel over rows or panels.
//
// Tables are (N, C), and A is their type. Results do not depend on the number of threads: what is
// summed in one go depends on shapes alone.

#pragma once

#include "layout.h"

namespace sn_openmmlab {

// Fill mean and variance of each channel of each sample: the first line of Eq. 4. The variance
// divides by the number of positions less `correction`, at least by one.
template <class A>
void instance_moments(const Arranged& x, std::int64_t correction, A* mean, A* var);

// Fill `y`, with the strides of x, with (x - centre) * scale + bias, where bias is (C,).
template <class A>
void affine(const Arranged& x, const at::Tensor& y, const A* centre, const A* scale,
            const A* bias);

// Fill the sums of dy and of dy * (x - centre) over the positions; dy has the strides of x.
template <class A>
void gradient_sums(const at::Tensor& dy, const Arranged& x, const A* centre, A* total, A* dot);

// Fill `dx` with dy * scale + x * slope + shift; dy and dx have the strides of x.
template <class A>
void input_gradient(const at::Tensor& dy, const Arranged& x, const at::Tensor& dx, const A* scale,
                    const A* slope, const A* shift);

}  // namespace sn_openmmlab
