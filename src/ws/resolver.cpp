#include <boost/asio/ip/tcp.hpp>
#include <memory>

#include "ws/opening.hpp"

namespace holdfast::ws {

Resolve system_resolver(boost::asio::io_context& context) {
  using boost::asio::ip::tcp;
  return [&context](const std::string& host, ResolveDone done) {
    const auto resolver = std::make_shared<tcp::resolver>(context);
    resolver->async_resolve(host, "0", tcp::resolver::numeric_service,
                            [resolver, host, done = std::move(done)](const boost::system::error_code& error,
                                                                     const tcp::resolver::results_type& found) {
                              if (error) return done(fail(Code::unavailable, error.message()));
                              std::vector<std::string> names;
                              for (const auto& entry : found) names.push_back(entry.endpoint().address().to_string());
                              done(std::move(names));
                            });
  };
}

}  // namespace holdfast::ws
