#include "worker/udp_pokes.hpp"

namespace holdfast::worker {
namespace {

struct Places {
  runtime::SocketAddress advertise, listen;
};

Result<Places> parse(const std::string& advertise, const std::string& listen) {
  auto told = runtime::parse_socket_address(advertise);
  if (!told) return fail(Code::usage, "what is advertised: " + told.error().detail);
  if (told->is_any()) {
    return fail(Code::usage, "what is advertised: " + advertise +
                                 " is every address of a machine; name the one that other workers reach");
  }
  if (listen.empty()) return Places{*told, *told};
  auto heard = runtime::parse_socket_address(listen);
  if (!heard) return fail(Code::usage, "where pokes are listened for: " + heard.error().detail);
  return Places{*std::move(told), *std::move(heard)};
}

}  // namespace

Result<void> UdpPokes::check(const std::string& advertise, const std::string& listen) {
  if (advertise.empty() && !listen.empty()) {
    return fail(Code::usage, "pokes are listened for on " + listen +
                                 ", but nobody is told where: advertise the address that other workers reach");
  }
  if (advertise.empty()) return {};
  if (auto places = parse(advertise, listen); !places) return tl::unexpected(places.error());
  return {};
}

Result<std::unique_ptr<UdpPokes>> UdpPokes::open(runtime::AsioLoop& loop, const std::string& advertise,
                                                 const std::string& listen) {
  auto places = parse(advertise, listen);
  if (!places) return tl::unexpected(places.error());
  auto socket = runtime::Datagrams::open(loop, places->listen);
  if (!socket) return tl::unexpected(socket.error());
  if (places->advertise.port == 0) places->advertise.port = (*socket)->port();
  return std::unique_ptr<UdpPokes>(new UdpPokes(*std::move(socket), std::move(places->advertise)));
}

void UdpPokes::send(const std::string& place, const std::string& text) {
  const auto to = runtime::parse_socket_address(place);
  if (to && to->port != 0) socket_->send(*to, text);
}

}  // namespace holdfast::worker
