#include "ws_client.hpp"

#include <stdexcept>

namespace holdfast::test {

std::vector<std::string> Client::texts() const {
  std::vector<std::string> result;
  for (const Heard& message : messages) result.push_back(message.data);
  return result;
}

std::string Client::how_it_ended() const {
  if (!closed) return opened ? "it is still open" : "it never opened";
  static constexpr const char* kinds[] = {"refused", "closed", "protocol", "failed", "local"};
  return std::string(kinds[static_cast<int>(closed->kind)]) + ' ' + std::to_string(closed->code) + " '" +
         closed->reason + "' status " + std::to_string(closed->http_status) + ": " + closed->error.detail;
}

void Client::on_open(const ws::Opened& what) {
  ++times_opened;
  opened = what;
}

void Client::on_message(const ws::Message& message) {
  if (instead_of_keeping) {
    instead_of_keeping(message);
  } else {
    messages.push_back({std::string(message.data), message.binary});
  }
}

void Client::on_closed(const ws::Closed& how) {
  ++times_closed;
  closed = how;
}

ws::ConnectOptions Network::options_for(const std::string& url) {
  Result<ws::Url> parsed = ws::parse_url(url);
  if (!parsed) throw std::runtime_error(parsed.error().detail);
  ws::ConnectOptions options;
  options.url = std::move(*parsed);
  return options;
}

ws::ConnectOptions Network::options_for(const Peer& peer, const std::string& target) {
  ws::ConnectOptions options = options_for(peer.url(target));
  options.ca_file = peer.ca_file();
  return options;
}

std::unique_ptr<Client> Network::connect(const Peer& peer, const std::string& target) {
  return connect(options_for(peer, target));
}

std::unique_ptr<Client> Network::connect(ws::ConnectOptions options) {
  auto client = std::make_unique<Client>();
  client->connection = engine.connect(std::move(options), *client);
  return client;
}

bool Network::until_open(const Client& client) {
  return run_until(
             loop, [&] { return client.opened || client.closed; }, generous) &&
         client.opened;
}

bool Network::until_closed(const Client& client) {
  return run_until(
      loop, [&] { return client.closed.has_value(); }, generous);
}

void Network::until_heard(const Client& client, std::size_t messages) {
  (void)run_until(
      loop, [&] { return client.closed || client.messages.size() >= messages; }, generous);
}

}  // namespace holdfast::test
