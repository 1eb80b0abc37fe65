/// @file judge.cpp
/// @brief The grader program: runs workers on cases, and checks their results. It never contains
/// code of a student.
///
///     judge LEVEL UID EMPTY_FOLDER         or    judge probe
///
/// A case is a line on standard input, its fields with tabs between them:
///
///     id  worker  symbols  rung  problem  seed  order  counters  most_outputs
///
/// `worker` is a program, `symbols` its table (own_symbols.hpp); `order` 0 is forward, 1 reverse,
/// 2 shuffled; `counters` are names with blanks between them. Each is answered by a line of JSON:
/// id, outcome, detail, counters, footprint, races, unwritten, cpu_seconds.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <regex>
#include <sstream>

#include "check/assignment.hpp"
#include "check/trial.hpp"
#include "core/error.hpp"
#include "course/grader/message.hpp"
#include "course/grader/process.hpp"
#include "oracle/canonical.hpp"
#include "oracle/made_up_sites.hpp"
#include "oracle/runner.hpp"

namespace convladder::grader {
namespace {

constexpr double kWallSeconds = 30;
constexpr std::uint64_t kCpuSeconds = 10,
                        kCpuSecondsWatched = 40;  // under the microscope, all is slow
constexpr std::size_t kMostDetail = 600;          // characters
constexpr double kMostInputBytes = 64e6;          // of a problem that a student has written

struct Request {
  std::string id, worker, symbols, rung, words;
  std::uint64_t seed = 0;
  std::uint32_t order = 0;
  std::string counters;
  std::int64_t most_outputs = 0;  ///< 0: any
};

struct Answer {
  std::string outcome, detail;
  std::map<std::string, double> counters = {}, footprint = {};
  std::vector<std::string> races = {}, unwritten = {};
  double cpu_seconds = 0;
};

/// Printable, and not long: it may be the worker's. Addresses, which differ from run to run, go.
std::string tidy(const std::string& text) {
  static const std::regex address("0x[0-9a-f]{5,}");
  std::string kept;
  for (const char c : std::regex_replace(text.substr(0, kMostText), address, "0x...")) {
    if (kept.size() == kMostDetail) return kept + " ...";
    if (c == '\n')
      kept += ' ';
    else if (c >= ' ' && c <= '~')
      kept += c;
  }
  while (kept.ends_with(' ')) kept.pop_back();
  return kept;
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : tidy(text)) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string json(const std::map<std::string, double>& numbers) {
  std::ostringstream out;
  out.precision(17);
  for (const auto& [name, value] : numbers)
    out << (out.tellp() > 0 ? ", " : "") << quoted(name) << ": " << value;
  return "{" + out.str() + "}";
}

std::string json(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& one : texts) list += (list.empty() ? "" : ", ") + quoted(one);
  return "[" + list + "]";
}

Request read_request(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, '\t');) fields.push_back(field);
  fields.resize(9);
  return {fields[0],
          fields[1],
          fields[2],
          fields[3],
          fields[4],
          std::stoull(fields[5]),
          static_cast<std::uint32_t>(std::stoul(fields[6])),
          fields[7],
          fields[8].empty() ? 0 : std::stoll(fields[8])};
}

double size_of_arrays(const std::vector<ArraySpec>& specs, bool in_bytes) {
  double sum = 0;
  for (const ArraySpec& spec : specs)
    sum += static_cast<double>(element_count(spec.shape)) *
           (in_bytes ? static_cast<double>(size_of(spec.dtype)) : 1.0);
  return sum;
}

/// A problem, its data and what is right.
class Case {
 public:
  explicit Case(const Request& request)
      : judged(check::rung_named(request.rung)),
        trial(check::read_trial(judged.ladder->name, check::split(request.words))) {
    const Signature signature = judged.ladder->signature(trial.problem);
    if (request.most_outputs > 0) {
      const double outputs = size_of_arrays(signature.outputs, false);
      require(outputs <= static_cast<double>(request.most_outputs), "outputs", outputs,
              text("must be at most ", request.most_outputs));
      const double bytes = size_of_arrays(signature.inputs, true);
      require(bytes <= kMostInputBytes, "bytes of inputs", bytes,
              text("must be at most ", kMostInputBytes));
    }
    const Where where = judged.rung->is_cuda() ? Where::emulated : Where::cpu;
    if (const Declined why = judged.rung->code_at(where)->supports(trial.problem))
      throw BadInput("the project's rung declines it: " + *why);
    comparison.emplace(*judged.ladder, trial.problem, Data::integer, request.seed, trial.given);
    inputs = comparison->inputs();
    if (const auto* book = std::get_if<RulebookProblem>(&trial.problem); book && trial.spoilt) {
      BadSites bad = bad_sites(*book, inputs.at("coords"), trial.spoilt->kind, trial.spoilt->count,
                               request.seed);
      refusal = bad.refusal;
      inputs.insert_or_assign("coords", std::move(bad.coords));
    }
  }

  check::Judged judged;
  check::Trial trial;
  std::optional<Comparison> comparison;
  Arrays inputs;
  std::string refusal;  ///< Of inputs that must be refused: how the rung must begin; else empty.
};

Nonce new_nonce() {
  static std::random_device random;
  Nonce nonce;
  for (std::size_t i = 0; i < nonce.size(); i += 4) {
    const unsigned number = random();
    std::memcpy(nonce.data() + i, &number, 4);
  }
  return nonce;
}

/// What the worker may read: its case and nothing else.
std::unique_ptr<SharedMemory> problem_of(const Case& one, const Request& request,
                                         const Nonce& nonce) {
  const Signature signature = one.judged.ladder->signature(one.trial.problem);
  std::size_t bytes = 4096 + request.words.size() + request.counters.size();
  for (const auto& [name, array] : one.inputs) bytes += array.size_bytes() + 128;
  auto memory = std::make_unique<SharedMemory>(bytes);
  Writer writer(memory->bytes());
  writer.value(nonce);
  writer.string(request.words);
  writer.value(request.order);
  writer.value(request.seed ^ 0x6f72646572u);  // of the shuffle: tells nothing about the data
  writer.string(request.counters);
  for (const ArraySpec& spec : signature.inputs) writer.array(one.inputs.at(spec.name));
  memory->make_read_only();
  return memory;
}

std::size_t result_bytes(const Case& one) {
  std::size_t bytes = std::size_t{256} << 10;
  for (const Expected& expected : one.comparison->expected())
    bytes += 2 * static_cast<std::size_t>(element_count(expected.spec.shape)) *
                 size_of(expected.spec.dtype) +
             4096;
  return bytes;
}

/// Of a process that has not written its nonce: what it was.
Answer unfinished(const Ended& ended) {
  const std::string last = tidy(ended.text);
  if (ended.signal != 0) {
    if (last.find("bad_alloc") != last.npos || last.find("emory") == 0)
      return {"memory", "more than it may have"};
    return {"crashed", text("signal ", ended.signal, last.empty() ? "" : ": ", last)};
  }
  if (ended.status == 86) return {"crashed", last};  // cuda_on_cpu's sentence (control.hpp)
  return {"ended_early", text("with exit status ", ended.status, " before the run was over",
                              last.empty() ? "" : ": ", last)};
}

void compare(const Case& one, const Arrays& outputs, Answer& answer) {
  const Arrays found = canonical(one.trial.problem, outputs);
  for (const Expected& expected : one.comparison->expected()) {
    const auto array = found.find(expected.spec.name);
    if (array == found.end()) {
      if (expected.spec.optional) continue;
      answer.outcome = "output_missing";
      answer.detail = expected.spec.name;
      return;
    }
    const Verdict verdict = judge(expected, array->second, Data::integer, one.trial.problem, {});
    if (verdict.agrees) continue;
    answer.outcome = "differs";
    answer.detail = verdict.difference;
    return;
  }
  answer.outcome = "agrees";
}

std::map<std::string, double> read_numbers(Reader& reader) {
  std::map<std::string, double> numbers;
  for (auto left = reader.value<std::uint32_t>(); left > 0; --left) {
    const std::string name = reader.string();
    const auto value = reader.value<double>();
    numbers[name] = value >= 0 && value < 1e18 ? value : 0;  // NaN is no number in JSON
  }
  return numbers;
}

std::vector<std::string> read_sentences(Reader& reader) {
  std::vector<std::string> sentences;
  for (auto left = reader.value<std::uint32_t>(); left > 0; --left)
    sentences.push_back(reader.string());
  return sentences;
}

Answer read_result(const Case& one, const Request& request, std::span<const std::byte> bytes) {
  Reader reader(bytes);
  reader.value<Nonce>();
  const auto ending = static_cast<Ending>(reader.value<std::uint32_t>());
  const std::string reason = reader.string();
  if (ending == Ending::damaged) return {"differs", reason};
  if (ending == Ending::refused) {
    if (!one.refusal.empty() && reason.starts_with(one.refusal)) return {"agrees", ""};
    return {"differs", text("refuses its inputs: ", reason,
                            one.refusal.empty() ? "" : ", and not: " + one.refusal)};
  }
  if (!one.refusal.empty() && ending == Ending::ran)
    return {"differs", "accepts inputs that it must reject: " + one.refusal};
  if (ending == Ending::declined) return {"declined", reason};
  if (ending == Ending::not_written) return {"not_written", reason};
  if (ending == Ending::memory) return {"memory", reason};
  if (ending != Ending::ran) throw Malformed();
  Arrays outputs;
  for (auto left = reader.value<std::uint32_t>(); left > 0; --left) {
    const std::string name = reader.string();
    outputs.insert_or_assign(name, reader.array());
  }
  Answer answer;
  compare(one, outputs, answer);
  if (request.counters.empty()) return answer;
  answer.counters = read_numbers(reader);
  answer.footprint = read_numbers(reader);
  answer.races = read_sentences(reader);
  answer.unwritten = read_sentences(reader);
  // Such memory holds NaNs: where the result is right, it does not depend on them.
  if (answer.outcome == "agrees") answer.unwritten.clear();
  return answer;
}

Answer run(const Case& one, const Request& request, Policy policy, const Offers& offers) {
  const Nonce nonce = new_nonce();
  const auto problem = problem_of(one, request, nonce);
  const SharedMemory result(result_bytes(one));
  const Descriptor program(open(request.worker.c_str(), O_RDONLY | O_CLOEXEC));
  const Descriptor symbols(open(request.symbols.c_str(), O_RDONLY | O_CLOEXEC));
  require(program.number() >= 0, "worker", request.worker, "cannot be opened");
  require(symbols.number() >= 0, "symbols", request.symbols, "cannot be opened");
  policy.program = program.number();
  policy.cpu_seconds = request.counters.empty() ? kCpuSeconds : kCpuSecondsWatched;
  const int files[] = {problem->file(), result.file(), symbols.number()};
  const double wall_seconds = kWallSeconds + static_cast<double>(policy.cpu_seconds - kCpuSeconds);
  const Ended ended = run_shut_in(policy, offers, files, wall_seconds);

  // A copy: the worker and all that it started are gone, but nothing here needs to rely on it.
  const std::vector<std::byte> bytes(result.bytes().begin(), result.bytes().end());
  Answer answer;
  if (ended.timed_out) {
    answer = {"timeout", text("more than ", policy.cpu_seconds, " s of computing, or ",
                              wall_seconds, " s in all")};
  } else if (ended.too_much_text) {
    answer = {"crashed", "printed more than 64 KiB"};
  } else if (std::memcmp(bytes.data(), nonce.data(), nonce.size()) != 0) {
    answer = unfinished(ended);
  } else {
    try {
      answer = read_result(one, request, bytes);
    } catch (const std::exception& error) {
      answer = {"crashed", error.what()};
    }
  }
  answer.cpu_seconds = ended.cpu_seconds;
  return answer;
}

/// Cases of one problem come one after the other: its data and its reference are kept.
class Cases {
 public:
  const Case& of(const Request& request) {
    const std::string key = text(request.rung, "\t", request.words, "\t", request.seed);
    if (key != key_ || !case_) {
      key_ = key;
      case_.reset();
      case_ = std::make_unique<Case>(request);
    }
    return *case_;
  }

 private:
  std::string key_;
  std::unique_ptr<Case> case_;
};

int judge_all(const Policy& policy, const Offers& offers) {
  become_keeper(policy.level, offers);
  Cases cases;
  for (std::string line; std::getline(std::cin, line);) {
    const Request request = read_request(line);
    Answer answer;
    try {
      answer = run(cases.of(request), request, policy, offers);
    } catch (const BadInput& error) {
      answer = {"bad_problem", error.what()};
    }
    std::printf(
        "{\"id\": %s, \"outcome\": %s, \"detail\": %s, \"counters\": %s, \"footprint\": %s, "
        "\"races\": %s, \"unwritten\": %s, \"cpu_seconds\": %.3f}\n",
        quoted(request.id).c_str(), quoted(answer.outcome).c_str(), quoted(answer.detail).c_str(),
        json(answer.counters).c_str(), json(answer.footprint).c_str(), json(answer.races).c_str(),
        json(answer.unwritten).c_str(), answer.cpu_seconds);
    std::fflush(stdout);
  }
  return 0;
}

int main_with(const std::vector<std::string>& words) {
  const Offers offers = find_offers();
  if (words.size() == 1 && words[0] == "probe") {
    std::printf("{\"landlock\": %d, \"seccomp\": %s, \"root\": %s, \"namespaces\": %s}\n",
                offers.landlock, offers.seccomp ? "true" : "false", offers.root ? "true" : "false",
                offers.namespaces ? "true" : "false");
    return 0;
  }
  require(words.size() == 3, "words", words.size(), "must be LEVEL UID EMPTY_FOLDER");
  Policy policy;
  policy.level = level_named(words[0]);
  policy.uid = static_cast<unsigned>(std::stoul(words[1]));
  policy.empty_root = words[2];
  if (!offers.has(policy.level)) {
    std::fprintf(stderr, "judge: isolation = %s: this machine does not offer it\n",
                 words[0].c_str());
    return 3;
  }
  return judge_all(policy, offers);
}

}  // namespace
}  // namespace convladder::grader

int main(int count, char** words) {
  try {
    return convladder::grader::main_with({words + 1, words + count});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "judge: %s\n", error.what());
    return 4;
  }
}
