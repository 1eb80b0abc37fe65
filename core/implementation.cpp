#include "core/implementation.hpp"

#include "core/type_names.hpp"

namespace convladder {
namespace {

thread_local CUstream_st* stream_of_thread = nullptr;

/// Makes a stream the current one during the lifetime of the object.
class StreamScope {
 public:
  explicit StreamScope(CUstream_st* stream) : before_(stream_of_thread) {
    stream_of_thread = stream;
  }
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;
  ~StreamScope() { stream_of_thread = before_; }

 private:
  CUstream_st* before_;
};

}  // namespace

void throw_wrong_type(DType is) {
  throw std::logic_error(std::string("an array holds ") + name_of(is));
}

CUstream_st* current_stream() { return stream_of_thread; }

void in_stream(CUstream_st* stream, const std::function<void()>& body) {
  const StreamScope scope(stream);
  body();
}

}  // namespace convladder
