#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "holdfast/error.hpp"
#include "store/dynamodb/aws_files.hpp"

namespace holdfast::store::dynamodb {

class Surroundings;

/// `http://` or `https://`, a host, a port, a path; nothing else, so that no two readers can see two hosts in it.
struct HttpUrl {
  bool tls = false;
  std::string host;        ///< lower case; an IPv6 address without its brackets
  std::uint16_t port = 0;  ///< 0: the scheme's
  std::string path;        ///< with its query; empty or from `/` on
  /// As it is asked for, without a slash at its end.
  [[nodiscard]] std::string text() const;
};
/// Code::usage says what is wrong. User names, fragments, blanks and non-ASCII are refused.
[[nodiscard]] Result<HttpUrl> parse_http_url(std::string_view text);

/// Whom to ask and how to sign, with where each is from, for people.
struct Endpoint {
  std::string url;  ///< without a slash at its end
  std::string region;
  std::string url_from;       ///< "AWS_ENDPOINT_URL", "region eu-west-1"
  std::string region_from;    ///< "AWS_REGION", "profile dev"
  bool is_of_region = false;  ///< nobody names an endpoint: the URL is AWS's own for the region
};

/// What the store's URL says; empty: nothing.
struct EndpointWish {
  std::string region;
  std::string endpoint;
};

/// The order of AWS's SDKs ("Service-specific endpoints" in their reference guide; botocore's configprovider.py). For
/// the region: the wish, AWS_REGION, AWS_DEFAULT_REGION, the profile's `region`, the one in an endpoint of AWS's. For
/// the endpoint: the wish, AWS_ENDPOINT_URL_SERVICE, AWS_ENDPOINT_URL, `endpoint_url` of the profile's `services`
/// section, the profile's `endpoint_url`, and else AWS's own for the region. All but the wish are passed over where
/// AWS_IGNORE_CONFIGURED_ENDPOINT_URLS or the profile's `ignore_configured_endpoint_urls` says `true`.
///
/// `service` is "dynamodb" or "sts". Code::usage names what is missing or wrong, and what to set.
[[nodiscard]] Result<Endpoint> find_endpoint(const std::string& service, const EndpointWish& wish,
                                             const VariableOf& variable, const AwsFiles& files);

/// The same on a machine, whose files are read if the wish does not say all. At start-up: it waits for the disk.
[[nodiscard]] Result<Endpoint> find_endpoint(const std::string& service, const EndpointWish& wish,
                                             const Surroundings& surroundings);

/// Who answers for the streams of the tables at that endpoint: what AWS_ENDPOINT_URL_DYNAMODB_STREAMS says, unless
/// the store's URL names an endpoint itself; beside an endpoint of AWS's own (`dynamodb.REGION.…`,
/// `dynamodb-fips.REGION.…`) the one called `streams.` of it; else the same, as with DynamoDB Local. Signed for the
/// same service and region.
[[nodiscard]] Result<std::string> streams_endpoint(const Endpoint& table, const EndpointWish& wish,
                                                   const VariableOf& variable);

/// The domain under which the services of a region are: "amazonaws.com", and "amazonaws.com.cn" for China.
[[nodiscard]] std::string_view domain_of_region(std::string_view region);

}  // namespace holdfast::store::dynamodb
