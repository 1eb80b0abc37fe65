#include "command/npy.hpp"

#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "command/files.hpp"
#include "core/error.hpp"

namespace convladder::command {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are copied as they are");

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlignment = 64;  // alignment of the elements in files that NumPy writes
constexpr std::size_t kMaxAxes = 32;    // the most axes of a NumPy array

/// The content of a header.
struct Header {
  std::string descr;
  bool fortran_order = false;
  Shape shape;
};

/// Parses the header: the few Python literals that it may contain.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  /// Empty if the text is not such a dictionary.
  std::optional<Header> parse() {
    std::optional<std::string> descr;
    std::optional<bool> fortran_order;
    std::optional<Shape> shape;
    if (!take('{')) return {};
    while (!take('}')) {
      const auto key = quoted();
      if (!key || !take(':')) return {};
      // Each key once.
      if (*key == "descr" && !descr) {
        if (!(descr = quoted())) return {};
      } else if (*key == "fortran_order" && !fortran_order) {
        if (!(fortran_order = boolean())) return {};
      } else if (*key == "shape" && !shape) {
        if (!(shape = tuple())) return {};
      } else {
        return {};
      }
      if (!take(',') && !sees('}')) return {};
    }
    skip_space();
    if (!text_.empty() || !descr || !fortran_order || !shape) return {};
    return Header{*descr, *fortran_order, *shape};
  }

 private:
  void skip_space() {
    while (!text_.empty() &&
           (text_[0] == ' ' || text_[0] == '\n' || text_[0] == '\t' || text_[0] == '\r')) {
      text_.remove_prefix(1);
    }
  }
  bool sees(char c) {
    skip_space();
    return !text_.empty() && text_[0] == c;
  }
  bool take(char c) {
    if (!sees(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool take_word(std::string_view word) {
    skip_space();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  std::optional<std::string> quoted() {
    const char quote = sees('\'') ? '\'' : '"';
    if (!take(quote)) return {};
    const std::size_t end = text_.find(quote);
    if (end == std::string_view::npos) return {};
    std::string word(text_.substr(0, end));
    text_.remove_prefix(end + 1);
    return word;
  }
  std::optional<bool> boolean() {
    if (take_word("True")) return true;
    if (take_word("False")) return false;
    return {};
  }
  std::optional<Shape> tuple() {
    Shape shape;
    if (!take('(')) return {};
    bool comma = false;
    while (!take(')')) {
      if (!shape.empty() && !comma) return {};
      skip_space();
      std::int64_t extent = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0 || shape.size() == kMaxAxes) return {};
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      take('L');  // Python 2 wrote long integers like this
      shape.push_back(extent);
      comma = take(',');
    }
    // (5) is a number in parentheses, (5,) a tuple.
    if (shape.size() == 1 && !comma) return {};
    return shape;
  }

  std::string_view text_;
};

/// Converts fp16 to float, which represents every fp16 value exactly.
float from_half(std::uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  const float sign = half >> 15 ? -1.0f : 1.0f;
  if (exponent == 31) {
    return fraction ? std::numeric_limits<float>::quiet_NaN()
                    : sign * std::numeric_limits<float>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}

/// Element i of the file's data, which may be unaligned.
template <class T>
T element(std::span<const std::byte> data, std::size_t i) {
  T value;
  std::memcpy(&value, data.data() + i * sizeof(T), sizeof(T));
  return value;
}

/// The position in the file's data of element i in row-major order, for a file in column-major
/// order.
class FortranOrder {
 public:
  explicit FortranOrder(const Shape& shape) : shape_(shape), index_(shape.size(), 0) {}

  /// The position of the next element; to be called once per element.
  std::size_t next() {
    std::size_t place = 0, stride = 1;
    for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
      place += static_cast<std::size_t>(index_[axis]) * stride;
      stride *= static_cast<std::size_t>(shape_[axis]);
    }
    for (std::size_t axis = shape_.size(); axis-- > 0;) {
      if (++index_[axis] < shape_[axis]) break;
      index_[axis] = 0;
    }
    return place;
  }

 private:
  Shape shape_;
  Shape index_;
};

class Reader {
 public:
  Reader(const std::string& parameter, const std::string& file, std::span<const std::byte> bytes)
      : parameter_(parameter), file_(file), bytes_(bytes) {}

  NpyFile read(Float64 float64) {
    const Header header = read_header();
    if (header.descr == "<f4") return elements<float, float>(header, "");
    if (header.descr == "<i4") return elements<std::int32_t, std::int32_t>(header, "");
    if (header.descr == "<f8" && float64 == Float64::kept) return kept(header);
    if (header.descr == "<f8") {
      return elements<double, float>(header, "float64 converted to float32");
    }
    if (header.descr == "<f2") {
      return elements<std::uint16_t, float>(header, "float16 converted to float32");
    }
    if (header.descr == "<i8") {
      return elements<std::int64_t, std::int32_t>(header, "int64 converted to int32");
    }
    fail(text("holds elements of type '", header.descr,
              "'; only <f4, <f8, <f2, <i4 and <i8 are read"));
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw BadInput(text(parameter_, " = ", file_, ": ", why));
  }

  /// Parses everything before the elements and removes it from bytes_.
  Header read_header() {
    const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(bytes_[i]); };
    if (bytes_.size() < kMagic.size() + 4 ||
        std::memcmp(bytes_.data(), kMagic.data(), kMagic.size()) != 0) {
      fail("is not a .npy file");
    }
    const std::size_t major = byte(6), minor = byte(7);
    if (major < 1 || major > 3 || minor != 0) {
      fail(text("has version ", major, ".", minor,
                " of the .npy format; versions 1.0 to 3.0 are read"));
    }
    std::size_t begin = 10, length = byte(8) | byte(9) << 8;
    if (major > 1) {
      if (bytes_.size() < 12) fail("ends within its header");
      begin = 12;
      length |= byte(10) << 16 | byte(11) << 24;
    }
    if (length > bytes_.size() - begin) fail("ends within its header");
    const std::string_view header(reinterpret_cast<const char*>(bytes_.data()) + begin, length);
    const auto parsed = HeaderParser(header).parse();
    if (!parsed) fail("the header does not describe a plain array");
    bytes_ = bytes_.subspan(begin + length);
    return *parsed;
  }

  /// Throws BadInput unless the number of elements matches the header.
  template <class Stored>
  void require_all(const Header& header) const {
    std::int64_t count = 0;
    try {
      count = element_count(header.shape);
    } catch (const BadInput& error) {
      fail(error.what());
    }
    const auto available = static_cast<std::int64_t>(bytes_.size() / sizeof(Stored));
    if (count > available || bytes_.size() != static_cast<std::size_t>(count) * sizeof(Stored)) {
      fail(text("holds ", bytes_.size(), " bytes of elements, but the header specifies ",
                to_string(header.shape), " of ", sizeof(Stored), " bytes each"));
    }
  }

  template <class Stored, class T>
  void copy_elements(const Header& header, std::span<T> values) const {
    FortranOrder order(header.shape);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Stored stored = element<Stored>(bytes_, header.fortran_order ? order.next() : i);
      values[i] = convert<T>(stored);
    }
  }

  template <class Stored, class T>
  NpyFile elements(const Header& header, const std::string& converted) const {
    require_all<Stored>(header);
    NpyFile file{Array(dtype_of<T>(), header.shape), converted};
    copy_elements<Stored>(header, file.array.template as<T>());
    return file;
  }

  NpyFile kept(const Header& header) const {
    require_all<double>(header);
    NpyFile file{Array(DType::f32, header.shape), "float64 converted to float32"};
    file.float64.resize(static_cast<std::size_t>(file.array.size()));
    copy_elements<double>(header, std::span(file.float64));
    return file;
  }

  template <class T, class Stored>
  T convert(Stored value) const {
    if constexpr (std::is_same_v<Stored, std::uint16_t>) {
      return from_half(value);
    } else if constexpr (std::is_same_v<Stored, double> && !std::is_same_v<T, double>) {
      // The conversion of a double beyond the range of float is undefined; infinities and NaN are
      // converted.
      if (std::isfinite(value) && std::abs(value) > double{std::numeric_limits<float>::max()}) {
        fail(text("the value ", value, " does not fit float32"));
      }
      return static_cast<T>(value);
    } else if constexpr (std::is_same_v<Stored, std::int64_t>) {
      if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max()) {
        fail(text("the value ", value, " does not fit int32"));
      }
      return static_cast<T>(value);
    } else {
      return value;
    }
  }

  std::string parameter_, file_;
  std::span<const std::byte> bytes_;
};

}  // namespace

NpyFile read_npy(const std::string& parameter, const std::filesystem::path& path, Float64 float64) {
  // The file with its elements as an array, and optionally the original float64 elements.
  require_available(
      (float64 == Float64::kept ? 3.0 : 2.0) * static_cast<double>(size_of_file(parameter, path)),
      text(parameter, " = ", path.string()));
  return parse_npy(parameter, path.string(), read_file(parameter, path), float64);
}

NpyFile parse_npy(const std::string& parameter, const std::string& file,
                  std::span<const std::byte> bytes, Float64 float64) {
  return Reader(parameter, file, bytes).read(float64);
}

std::vector<std::byte> npy_bytes(const Array& array) {
  std::string header = text("{'descr': '", array.dtype() == DType::f32 ? "<f4" : "<i4",
                            "', 'fortran_order': False, 'shape': (", joined(array.shape(), ", "),
                            array.shape().size() == 1 ? ",), }" : "), }");
  const std::size_t before = kMagic.size() + 4;
  header.append((kAlignment - (before + header.size() + 1) % kAlignment) % kAlignment, ' ');
  header += '\n';
  std::string start(kMagic);
  start += {'\x01', '\x00', static_cast<char>(header.size() & 255),
            static_cast<char>(header.size() >> 8)};
  start += header;
  std::vector<std::byte> bytes(start.size() + array.size_bytes());
  std::memcpy(bytes.data(), start.data(), start.size());
  if (array.size_bytes() != 0)
    std::memcpy(bytes.data() + start.size(), array.data(), array.size_bytes());
  return bytes;
}

}  // namespace convladder::command
