#include "passes.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "loops.h"
#include "types.h"

namespace sn_openmmlab {

namespace {

// Numbers that are worth a thread.
constexpr std::int64_t kGrain = 1 << 15;
// Positions of a row, or of a panel, that one thread sums; and numbers of short rows, or of whole
// positions, that it visits in one go.
constexpr std::int64_t kRowSegment = 1 << 16;
constexpr std::int64_t kShortRows = 1 << 12;
constexpr std::int64_t kPanelSegment = 1 << 10;
constexpr std::int64_t kWholeSegment = 1 << 14;

// Bytes of an output that the caches of most processors cannot hold: it is written past them.
constexpr std::size_t kAround = std::size_t{1} << 24;
// Numbers side by side, of a row or a position, whose unaligned ends matter little.
constexpr std::int64_t kLong = 256;

std::int64_t blocks(std::int64_t size, std::int64_t length) { return (size + length - 1) / length; }

// Positions of a sample split into segments, and its channels into panels.
struct Split {
  Extent extent;
  std::int64_t length;
  std::int64_t segments;
  std::int64_t width;
  std::int64_t panels;

  std::int64_t items() const { return extent.samples * segments * panels; }
  std::int64_t grain() const { return std::max<std::int64_t>(kGrain / (length * width), 1); }
};

Split split_rows(const Extent& extent) {
  const std::int64_t length = std::max<std::int64_t>(std::min(extent.positions, kRowSegment), 1);
  const std::int64_t fitting = std::max<std::int64_t>(kShortRows / length, 1);
  const std::int64_t width = std::min({extent.channels, fitting, kMostSums});
  return {extent, length, blocks(extent.positions, length), width,
          blocks(extent.channels, width)};
}

Split split_panels(const Extent& extent, std::int64_t width, std::int64_t fitting) {
  const std::int64_t length = std::max<std::int64_t>(std::min(extent.positions, fitting), 1);
  return {extent, length, blocks(extent.positions, length), width, blocks(extent.channels, width)};
}

// A part of the work: some positions of some channels of a sample.
struct Item {
  std::int64_t table;     // of the first channel in an (N, C) table
  std::int64_t channel;   // the first channel
  std::int64_t channels;  // their number
  std::int64_t sample;
  std::int64_t segment;
  std::int64_t position;
  std::int64_t positions;
};

// Call `work` with the parts of a range, one after the other.
template <class Work>
void walk(const Split& split, std::int64_t begin, std::int64_t end, const Work& work) {
  const Extent& e = split.extent;
  std::int64_t panel = begin % split.panels, rest = begin / split.panels;
  std::int64_t segment = rest % split.segments, sample = rest / split.segments;
  for (std::int64_t index = begin; index < end; ++index) {
    const std::int64_t channel = panel * split.width, position = segment * split.length;
    work(Item{sample * e.channels + channel, channel,
              std::min(split.width, e.channels - channel), sample, segment, position,
              std::min(split.length, e.positions - position)});
    if (++panel < split.panels) continue;
    panel = 0;
    if (++segment < split.segments) continue;
    segment = 0;
    ++sample;
  }
}

// Call `work` with every part, in parallel; neighbouring channels come one after the other.
template <class Work>
void for_each(const Split& split, const Work& work) {
  at::parallel_for(0, split.items(), split.grain(), [&](std::int64_t begin, std::int64_t end) {
    walk(split, begin, end, work);
  });
}

// The same from the end: a second pass begins with what the first one left in the cache. Parts that
// are worth a thread are walked forwards, as the processor expects.
template <class Work>
void for_each_backwards(const Split& split, const Work& work) {
  const std::int64_t grain = split.grain();
  at::parallel_for(0, split.items(), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t last = end; last > begin; last -= grain) {
      walk(split, std::max(begin, last - grain), last, work);
    }
  });
}

template <class T>
class Rows {
 public:
  explicit Rows(const Extent& extent) : split_(split_rows(extent)), loops_(loops<T>()) {}

  const Split& split() const { return split_; }

  void moments(const T* x, const Item& item, Deviation* out) const {
    loops_.row_moments(x + place(item), item.channels, item.positions, out);
  }

  void sums(const T* dy, const T* x, const Statistics<T>* centre, const Item& item,
            Sums* out) const {
    loops_.row_sums(dy + place(item), x + place(item), item.channels, item.positions,
                    centre + item.table, out);
  }

  const Split& split_elementwise() const { return split_; }

  std::int64_t stretch() const { return split_.extent.positions; }

  void affine(const T* x, T* y, const Statistics<T>* centre, const Statistics<T>* scale,
              const Statistics<T>* bias, const Item& item, bool around) const {
    loops_.row_affine(x + place(item), y + place(item), item.channels, item.positions,
                      centre + item.table, scale + item.table, bias + item.channel, around);
  }

  void gradient(const T* dy, const T* x, T* dx, const Statistics<T>* scale,
                const Statistics<T>* slope, const Statistics<T>* shift, const Item& item,
                bool around) const {
    loops_.row_gradient(dy + place(item), x + place(item), dx + place(item), item.channels,
                        item.positions, scale + item.table, slope + item.table,
                        shift + item.table, around);
  }

 private:
  std::int64_t place(const Item& item) const {
    return item.table * split_.extent.positions + item.position;
  }

  Split split_;
  const Loops<T>& loops_;
};

template <class T>
class Panels {
 public:
  explicit Panels(const Extent& extent)
      : split_(split_panels(extent, std::min(extent.channels, kMostSums), kPanelSegment)),
        whole_(split_panels(extent, extent.channels, kWholeSegment / extent.channels)),
        loops_(loops<T>()) {}

  const Split& split() const { return split_; }

  void moments(const T* x, const Item& item, Deviation* out) const {
    loops_.panel_moments(x + place(item), item.positions, item.channels, stride(), out);
  }

  void sums(const T* dy, const T* x, const Statistics<T>* centre, const Item& item,
            Sums* out) const {
    loops_.panel_sums(dy + place(item), x + place(item), item.positions, item.channels, stride(),
                      centre + item.table, out);
  }

  // All channels of a position at once: they are read and written in one go.
  const Split& split_elementwise() const { return whole_; }

  std::int64_t stretch() const { return stride(); }

  void affine(const T* x, T* y, const Statistics<T>* centre, const Statistics<T>* scale,
              const Statistics<T>* bias, const Item& item, bool around) const {
    loops_.panel_affine(x + place(item), y + place(item), item.positions, item.channels, stride(),
                        centre + item.table, scale + item.table, bias + item.channel, around);
  }

  void gradient(const T* dy, const T* x, T* dx, const Statistics<T>* scale,
                const Statistics<T>* slope, const Statistics<T>* shift, const Item& item,
                bool around) const {
    loops_.panel_gradient(dy + place(item), x + place(item), dx + place(item), item.positions,
                          item.channels, stride(), scale + item.table, slope + item.table,
                          shift + item.table, around);
  }

 private:
  std::int64_t stride() const { return split_.extent.channels; }

  std::int64_t place(const Item& item) const {
    const std::int64_t position = item.sample * split_.extent.positions + item.position;
    return position * stride() + item.channel;
  }

  Split split_;
  Split whole_;
  const Loops<T>& loops_;
};

// Whether to write an output, or a part of one, around the cache.
template <class T, class Way>
bool goes_around(const at::Tensor& y, const Way& way) {
  // In half precision this took longer: a store fills a quarter of a cache line.
  if (sizeof(T) < sizeof(float)) return false;
  const bool stays_aligned = way.stretch() * sizeof(T) % 32 == 0;
  return y.storage().nbytes() >= kAround && (stays_aligned || way.stretch() >= kLong);
}

// Sum `Part`s of all positions of each entry of the table, and call `store` with the sum.
//
// `sum` fills the parts of a piece of work. `merge` adds a part of some positions to those before.
template <class Part, class Sum, class Merge, class Store>
void reduce(const Split& split, const Sum& sum, const Merge& merge, const Store& store) {
  if (split.segments == 1) {
    for_each(split, [&](const Item& item) {
      Part found[kMostSums];
      sum(item, found);
      for (std::int64_t c = 0; c < item.channels; ++c) store(item.table + c, found[c]);
    });
    return;
  }
  const std::int64_t channels = split.extent.channels, positions = split.extent.positions;
  std::vector<Part> parts(split.extent.samples * split.segments * channels);
  for_each(split, [&](const Item& item) {
    const std::int64_t segment = item.sample * split.segments + item.segment;
    sum(item, parts.data() + segment * channels + item.channel);
  });
  const std::int64_t entries = split.extent.samples * channels;
  at::parallel_for(0, entries, kGrain / 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t entry = begin; entry < end; ++entry) {
      const std::int64_t sample = entry / channels, channel = entry % channels;
      const Part* part = parts.data() + sample * split.segments * channels + channel;
      Part all = *part;
      for (std::int64_t s = 1; s < split.segments; ++s) {
        const std::int64_t before = s * split.length;
        const std::int64_t count = std::min(split.length, positions - before);
        merge(&all, before, part[s * channels], count);
      }
      store(entry, all);
    }
  });
}

// Call `work` with a number of the type of x and the way to visit it.
template <class A, class Work>
void visit(const Arranged& x, const Work& work) {
  for_numbers<A>(x.x.scalar_type(), [&](auto number) {
    using T = decltype(number);
    if (x.order == Order::kRows) {
      work(number, Rows<T>(extent_of(x.x)));
    } else {
      work(number, Panels<T>(extent_of(x.x)));
    }
  });
}

}  // namespace

template <class A>
void instance_moments(const Arranged& x, std::int64_t correction, A* mean, A* var) {
  const std::int64_t positions = extent_of(x.x).positions;
  const double divisor = static_cast<double>(std::max<std::int64_t>(positions - correction, 1));
  visit<A>(x, [&](auto number, const auto& way) {
    const auto* values = data<decltype(number)>(x.x);
    reduce<Deviation>(
        way.split(), [&](const Item& item, Deviation* found) { way.moments(values, item, found); },
        [](Deviation* all, std::int64_t before, const Deviation& more, std::int64_t count) {
          merge(all, static_cast<double>(before), more, static_cast<double>(count));
        },
        [&](std::int64_t entry, const Deviation& found) {
          mean[entry] = static_cast<A>(found.mean);
          var[entry] = static_cast<A>(found.square / divisor);
        });
  });
}

template <class A>
void affine(const Arranged& x, const at::Tensor& y, const A* centre, const A* scale,
            const A* bias) {
  visit<A>(x, [&](auto number, const auto& way) {
    using T = decltype(number);
    const T* values = data<T>(x.x);
    T* results = data<T>(y);
    const bool around = goes_around<T>(y, way);
    for_each_backwards(way.split_elementwise(), [&](const Item& item) {
      way.affine(values, results, centre, scale, bias, item, around);
    });
  });
}

template <class A>
void gradient_sums(const at::Tensor& dy, const Arranged& x, const A* centre, A* total, A* dot) {
  visit<A>(x, [&](auto number, const auto& way) {
    using T = decltype(number);
    const T *gradients = data<T>(dy), *values = data<T>(x.x);
    reduce<Sums>(
        way.split(),
        [&](const Item& item, Sums* found) { way.sums(gradients, values, centre, item, found); },
        [](Sums* all, std::int64_t, const Sums& more, std::int64_t) {
          all->total += more.total;
          all->dot += more.dot;
        },
        [&](std::int64_t entry, const Sums& found) {
          total[entry] = static_cast<A>(found.total);
          dot[entry] = static_cast<A>(found.dot);
        });
  });
}

template <class A>
void input_gradient(const at::Tensor& dy, const Arranged& x, const at::Tensor& dx, const A* scale,
                    const A* slope, const A* shift) {
  visit<A>(x, [&](auto number, const auto& way) {
    using T = decltype(number);
    const T *gradients = data<T>(dy), *values = data<T>(x.x);
    T* results = data<T>(dx);
    const bool around = goes_around<T>(dx, way);
    for_each_backwards(way.split_elementwise(), [&](const Item& item) {
      way.gradient(gradients, values, results, scale, slope, shift, item, around);
    });
  });
}

template void instance_moments(const Arranged&, std::int64_t, float*, float*);
template void instance_moments(const Arranged&, std::int64_t, double*, double*);
template void affine(const Arranged&, const at::Tensor&, const float*, const float*, const float*);
template void affine(const Arranged&, const at::Tensor&, const double*, const double*,
                     const double*);
template void gradient_sums(const at::Tensor&, const Arranged&, const float*, float*, float*);
template void gradient_sums(const at::Tensor&, const Arranged&, const double*, double*, double*);
template void input_gradient(const at::Tensor&, const Arranged&, const at::Tensor&, const float*,
                             const float*, const float*);
template void input_gradient(const at::Tensor&, const Arranged&, const at::Tensor&, const double*,
                             const double*, const double*);

}  // namespace sn_openmmlab
