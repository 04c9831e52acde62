// The innermost loops over memory, compiled once per instruction set.
//
// A row holds the positions of one channel of one sample, one after the other. A panel holds
// neighbouring channels at some positions of one sample, as in channels_last: the channels of a
// position lie side by side, and the next position is `stride` elements away.

#pragma once

#include <cstdint>

// Where the compiler can compile a file for a newer processor than the one it builds for.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define SN_AVX2
#endif

namespace sn_openmmlab {

struct Half {
  std::uint16_t bits;
};

struct BFloat16 {
  std::uint16_t bits;
};

// The type in which numbers of type T are computed and kept in tables.
template <class T>
struct StatisticsOf {
  using type = float;
};

template <>
struct StatisticsOf<double> {
  using type = double;
};

template <class T>
using Statistics = typename StatisticsOf<T>::type;

// Rows, or channels of a panel, that are summed at once, at most.
constexpr std::int64_t kMostSums = 512;

// What is known of some numbers: their mean, and the sum of squared deviations from it.
struct Deviation {
  double mean;
  double square;
};

// Add what is known of more numbers to what is known of `before` ones: the law of total variance.
inline void merge(Deviation* all, double before, const Deviation& more, double count) {
  const double gap = more.mean - all->mean;
  const double share = count / (before + count);
  all->mean += gap * share;
  all->square += more.square + gap * gap * before * share;
}

// Of an output's gradient: its sum, and its dot product with the deviation of the input.
struct Sums {
  double total;
  double dot;
};

// Tables hold one number per row, or per channel of a panel.
template <class T>
struct Loops {
  using A = Statistics<T>;

  // Rows follow one another in memory.
  void (*row_moments)(const T* x, std::int64_t rows, std::int64_t length, Deviation* out);
  // y = (x - centre) * scale + bias; `around`: y is too large for the cache, and is written past it
  void (*row_affine)(const T* x, T* y, std::int64_t rows, std::int64_t length, const A* centre,
                     const A* scale, const A* bias, bool around);
  void (*row_sums)(const T* dy, const T* x, std::int64_t rows, std::int64_t length,
                   const A* centre, Sums* out);
  // dx = dy * scale + x * slope + shift
  void (*row_gradient)(const T* dy, const T* x, T* dx, std::int64_t rows, std::int64_t length,
                       const A* scale, const A* slope, const A* shift, bool around);

  void (*panel_moments)(const T* x, std::int64_t positions, std::int64_t channels,
                        std::int64_t stride, Deviation* out);
  void (*panel_affine)(const T* x, T* y, std::int64_t positions, std::int64_t channels,
                       std::int64_t stride, const A* centre, const A* scale, const A* bias,
                       bool around);
  void (*panel_sums)(const T* dy, const T* x, std::int64_t positions, std::int64_t channels,
                     std::int64_t stride, const A* centre, Sums* out);
  void (*panel_gradient)(const T* dy, const T* x, T* dx, std::int64_t positions,
                         std::int64_t channels, std::int64_t stride, const A* scale,
                         const A* slope, const A* shift, bool around);
};

// The loops for the processor at hand.
template <class T>
const Loops<T>& loops();

// The instruction set of these loops: "avx2" or "baseline", that of the compiler's target.
const char* instruction_set();

}  // namespace sn_openmmlab
