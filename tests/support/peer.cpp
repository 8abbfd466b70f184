#include "support/peer.hpp"

#include <cstdlib>
#include <stdexcept>

#include "support/places.hpp"

namespace holdfast::test {
namespace {

std::string environment_or(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : fallback;
}

void run(const std::vector<std::string>& arguments) {
  runtime::SpawnOptions options;
  options.arguments = arguments;
  options.output = runtime::SpawnOptions::Output::pipe;
  options.errors_to_output = true;
  Result<runtime::Child> child = runtime::spawn(options);
  if (!child) throw std::runtime_error(child.error().detail);
  const std::string output = child->read_all(generous);
  if (child->wait(generous) != runtime::Exit{}) throw std::runtime_error(arguments.front() + " failed: " + output);
}

}  // namespace

Certificate make_certificate(const TemporaryFolder& folder, const std::string& name, const std::string& names,
                             int days) {
  const Certificate made{folder.file(name + ".crt"), folder.file(name + ".key")};
  const std::string request = folder.file(name + ".csr");
  run({"openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
       "/CN=" + name, "-addext", "subjectAltName=" + names, "-keyout", made.key_file, "-out", request});
  run({"openssl", "x509", "-req", "-in", request, "-copy_extensions", "copy", "-signkey", made.key_file, "-days",
       std::to_string(days), "-out", made.certificate_file});
  return made;
}

Peer::Peer(const std::string& program, Options options) : options_(std::move(options)) {
  const std::string interpreter = program.ends_with(".py") ? environment_or("HOLDFAST_PYTHON", "/usr/bin/python3")
                                                           : environment_or("HOLDFAST_NODE", "node");
  runtime::SpawnOptions spawn;
  spawn.arguments = {interpreter, std::string(source_folder) + "/tests/peers/" + program, "--host", options_.host};
  if (options_.tls) {
    certificate_ = make_certificate(folder_, "peer", options_.names, options_.days);
    spawn.arguments.insert(spawn.arguments.end(),
                           {"--cert", certificate_.certificate_file, "--key", certificate_.key_file});
  }
  spawn.environment = {{"PYTHONDONTWRITEBYTECODE", "1"}};
  spawn.output = runtime::SpawnOptions::Output::pipe;
  spawn.dies_with_parent = true;
  Result<runtime::Child> child = runtime::spawn(spawn);
  if (!child) throw std::runtime_error(child.error().detail);
  child_ = std::move(*child);
  const Result<std::string> line = child_.read_line(generous);
  if (!line || line->empty()) throw std::runtime_error(program + " did not start: see its message on standard error");
  port_ = static_cast<std::uint16_t>(std::stoul(*line));
}

std::string Peer::url(const std::string& target, const std::string& host) const {
  const std::string shown = host.find(':') != std::string::npos ? '[' + host + ']' : host;
  return (options_.tls ? "wss://" : "ws://") + shown + ':' + std::to_string(port_) + target;
}

std::string Peer::line() {
  return child_.read_line(generous).value_or("");
}

}  // namespace holdfast::test
