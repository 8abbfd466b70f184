#include "store/dynamodb/endpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fake_surroundings.hpp"
#include "support/virtual_loop.hpp"

namespace holdfast::store::dynamodb {
namespace {

using testing::HasSubstr;

TEST(HttpUrl, is_read_and_written_back) {
  const std::pair<const char*, const char*> cases[] = {
      {"http://localhost:8000", "http://localhost:8000"},
      {"https://Dynamodb.EU-west-1.amazonaws.com/", "https://dynamodb.eu-west-1.amazonaws.com"},
      {"http://[FD00:ec2::254]:80/x/", "http://[fd00:ec2::254]:80/x"},
      {"http://127.0.0.1/a?b=c", "http://127.0.0.1/a?b=c"},
      {"http://h?q", "http://h/?q"},
  };
  for (const auto& [text, expected] : cases) {
    const auto url = parse_http_url(text);
    ASSERT_TRUE(url) << text << ": " << url.error().detail;
    EXPECT_EQ(url->text(), expected);
  }
}

TEST(HttpUrl, in_which_two_readers_could_see_two_hosts_is_refused) {
  for (const char* text : {"",
                           "localhost:8000",
                           "ftp://x",
                           "HTTP://x",
                           "http://",
                           "http:///x",
                           "http://a@b",
                           "http://169.254.170.2@evil.com/",
                           "http://evil.com\\@localhost/",
                           "http://evil.com#@localhost/",
                           "http://a b/",
                           "http://a\r\nb/",
                           "http://a\tb",
                           "http://h:0",
                           "http://h:65536",
                           "http://h:",
                           "http://h:1x",
                           "http://[::1",
                           "http://[::1]x",
                           "http://[g::1]/",
                           "http://[::1%25eth0]/",
                           "http://h\xc3\xa9/",
                           "http://%6cocalhost/",
                           "http://a,b/",
                           "http://x:1:2/"})
    EXPECT_FALSE(parse_http_url(text)) << text;
}

struct EndpointTest : testing::Test {
  [[nodiscard]] Result<Endpoint> find(const EndpointWish& wish = {}, const std::string& service = "dynamodb") const {
    return find_endpoint(
        service, wish,
        [this](const std::string& name) -> std::optional<std::string> {
          const auto found = variables.find(name);
          return found == variables.end() ? std::nullopt : std::optional(found->second);
        },
        files);
  }
  void config(const std::string& text, const std::string& profile = "default") {
    files.places.profile = profile;
    files.places.config = "/config";
    files.found = sort_out(*parse_aws_file(text), {});
  }
  [[nodiscard]] std::string region(const EndpointWish& wish = {}) const {
    const auto endpoint = find(wish);
    return endpoint ? endpoint->region + " by " + endpoint->region_from : endpoint.error().detail;
  }
  [[nodiscard]] std::string url(const EndpointWish& wish = {}, const std::string& service = "dynamodb") const {
    const auto endpoint = find(wish, service);
    return endpoint ? endpoint->url + " by " + endpoint->url_from : endpoint.error().detail;
  }

  [[nodiscard]] std::string streams(const EndpointWish& wish = {}) const {
    const auto table = find(wish);
    if (!table) return table.error().detail;
    const auto found = streams_endpoint(*table, wish, [this](const std::string& name) -> std::optional<std::string> {
      const auto set = variables.find(name);
      return set == variables.end() ? std::nullopt : std::optional(set->second);
    });
    return found ? *found : found.error().detail;
  }

  std::map<std::string, std::string> variables;
  AwsFiles files;
};

// As boto3.client("dynamodbstreams").meta.endpoint_url has them.
TEST_F(EndpointTest, the_streams_of_awss_tables_are_beside_them_and_those_of_others_with_them) {
  EXPECT_EQ(streams({"eu-west-1", ""}), "https://streams.dynamodb.eu-west-1.amazonaws.com");
  EXPECT_EQ(streams({"cn-north-1", ""}), "https://streams.dynamodb.cn-north-1.amazonaws.com.cn");
  EXPECT_EQ(streams({"us-east-1", "https://dynamodb.us-east-1.amazonaws.com"}),
            "https://streams.dynamodb.us-east-1.amazonaws.com");
  EXPECT_EQ(streams({"us-east-1", "https://dynamodb-fips.us-east-1.amazonaws.com"}),
            "https://streams.dynamodb-fips.us-east-1.amazonaws.com");
  EXPECT_EQ(streams({"us-east-1", "https://dynamodb.us-east-1.api.aws"}),
            "https://streams.dynamodb.us-east-1.api.aws");
  EXPECT_EQ(streams({"us-east-1", "http://127.0.0.1:8000"}), "http://127.0.0.1:8000");
  EXPECT_EQ(streams({"us-east-1", "http://dynamodb.example.org:8000"}), "http://dynamodb.example.org:8000");
  variables["AWS_ENDPOINT_URL_DYNAMODB"] = "http://local:8000";
  EXPECT_EQ(streams({"us-east-1", ""}), "http://local:8000");
  variables["AWS_ENDPOINT_URL_DYNAMODB_STREAMS"] = "http://streams:8001/";
  EXPECT_EQ(streams({"us-east-1", ""}), "http://streams:8001");
  EXPECT_EQ(streams({"us-east-1", "http://own:1"}), "http://own:1") << "the store's URL says it all";
  variables["AWS_ENDPOINT_URL_DYNAMODB_STREAMS"] = "streams";
  EXPECT_NE(streams({"us-east-1", ""}).find("AWS_ENDPOINT_URL_DYNAMODB_STREAMS is no URL"), std::string::npos);
}

TEST_F(EndpointTest, the_region_is_the_urls_then_the_environments_then_the_profiles) {
  config("[default]\nregion = r-profile\n");
  EXPECT_EQ(region(), "r-profile by profile default");
  variables["AWS_DEFAULT_REGION"] = "r-fallback";
  EXPECT_EQ(region(), "r-fallback by AWS_DEFAULT_REGION");
  variables["AWS_REGION"] = "r-env";
  EXPECT_EQ(region(), "r-env by AWS_REGION");
  EXPECT_EQ(region({"r-url", ""}), "r-url by the store's URL");
}

TEST_F(EndpointTest, without_a_region_it_says_where_to_put_one) {
  const auto endpoint = find({"", "http://localhost:8000"});
  ASSERT_FALSE(endpoint);
  EXPECT_EQ(endpoint.error().code, Code::usage);
  EXPECT_THAT(endpoint.error().detail, HasSubstr("AWS_REGION"));
  EXPECT_THAT(endpoint.error().detail, HasSubstr("region="));
}

TEST_F(EndpointTest, the_region_is_in_an_endpoint_of_awss_own) {
  EXPECT_EQ(region({"", "https://dynamodb.ap-south-1.amazonaws.com"}), "ap-south-1 by the endpoint");
  EXPECT_EQ(region({"", "https://dynamodb.cn-north-1.amazonaws.com.cn"}), "cn-north-1 by the endpoint");
  EXPECT_THAT(region({"", "https://dynamodb.ap-south-1.example.com"}), HasSubstr("no AWS region"));
  EXPECT_EQ(region({"eu-west-1", "https://dynamodb.ap-south-1.amazonaws.com"}), "eu-west-1 by the store's URL");
}

TEST_F(EndpointTest, what_is_no_region_is_refused_before_it_becomes_a_host) {
  for (const char* bad : {"eu-west-1.evil.com", "EU-WEST-1", "eu west", "-x", "x-", "a/b", "us-east-1a"})
    EXPECT_FALSE(find({bad, ""})) << bad;
  EXPECT_THAT(region({"us-east-1a", ""}), HasSubstr("availability zone"));
}

TEST_F(EndpointTest, the_endpoint_is_found_in_the_order_of_the_sdks) {
  EXPECT_EQ(url({"eu-west-1", ""}), "https://dynamodb.eu-west-1.amazonaws.com by region eu-west-1");
  config("[default]\nregion = eu-west-1\nendpoint_url = http://profile\n");
  EXPECT_EQ(url(), "http://profile by profile default");
  config(
      "[default]\nregion = eu-west-1\nendpoint_url = http://profile\nservices = mine\n"
      "[services mine]\ndynamodb =\n  endpoint_url = http://services/\ns3 =\n  endpoint_url = http://s3\n");
  EXPECT_EQ(url(), "http://services by [services mine]");
  variables["AWS_ENDPOINT_URL"] = "http://all";
  EXPECT_EQ(url(), "http://all by AWS_ENDPOINT_URL");
  EXPECT_EQ(url({}, "sts"), "http://all by AWS_ENDPOINT_URL");
  variables["AWS_ENDPOINT_URL_DYNAMODB"] = "http://own:8000/";
  EXPECT_EQ(url(), "http://own:8000 by AWS_ENDPOINT_URL_DYNAMODB");
  EXPECT_EQ(url({"", "http://wish"}), "http://wish by the store's URL");
  variables["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] = "True";
  EXPECT_EQ(url(), "https://dynamodb.eu-west-1.amazonaws.com by region eu-west-1");
  EXPECT_EQ(url({"", "http://wish"}), "http://wish by the store's URL");
}

TEST_F(EndpointTest, a_profile_can_have_its_endpoints_ignored) {
  config("[default]\nregion = eu-west-1\nendpoint_url = http://x\nignore_configured_endpoint_urls = true\n");
  EXPECT_EQ(url(), "https://dynamodb.eu-west-1.amazonaws.com by region eu-west-1");
}

TEST_F(EndpointTest, a_services_section_that_is_not_there_is_an_error) {
  config("[default]\nregion = eu-west-1\nservices = gone\n");
  EXPECT_THAT(url(), HasSubstr("no [services gone] in /config"));
}

TEST_F(EndpointTest, the_domain_is_that_of_the_partition) {
  EXPECT_EQ(find({"cn-northwest-1", ""})->url, "https://dynamodb.cn-northwest-1.amazonaws.com.cn");
  EXPECT_EQ(find({"us-gov-west-1", ""})->url, "https://dynamodb.us-gov-west-1.amazonaws.com");
  EXPECT_EQ(find({"us-iso-east-1", ""})->url, "https://dynamodb.us-iso-east-1.c2s.ic.gov");
  EXPECT_EQ(find({"us-isob-east-1", ""}, "sts")->url, "https://sts.us-isob-east-1.sc2s.sgov.gov");
}

TEST_F(EndpointTest, an_endpoint_that_is_no_url_is_refused_with_where_it_is_from) {
  variables["AWS_ENDPOINT_URL"] = "localhost:8000";
  EXPECT_THAT(url({"eu-west-1", ""}), HasSubstr("AWS_ENDPOINT_URL"));
  EXPECT_THAT(url({"eu-west-1", "http://h/?x=y"}), HasSubstr("?"));
}

TEST_F(EndpointTest, an_error_is_one_line_whatever_it_names) {
  config("[default]\nregion = eu-west-1\nservices = two\n  lines\n");
  EXPECT_THAT(url(), HasSubstr("two lines"));
  config("[default]\nregion = eu\n  west\n");
  EXPECT_THAT(url(), HasSubstr("'eu west' is no AWS region"));
}

TEST_F(EndpointTest, a_fips_endpoint_has_to_be_named) {
  variables["AWS_USE_FIPS_ENDPOINT"] = "true";
  EXPECT_THAT(url({"us-east-1", ""}), HasSubstr("dynamodb-fips.us-east-1.amazonaws.com"));
  EXPECT_EQ(find({"us-east-1", "https://x"})->url, "https://x");
}

TEST(EndpointHere, reads_the_machines_files_unless_all_is_said) {
  test::VirtualLoop loop;
  test::FakeSurroundings machine(loop);
  machine.files["/home/me/.aws/config"] = "[default]\nregion = eu-north-1\n";
  EXPECT_EQ(find_endpoint("dynamodb", {}, machine)->url, "https://dynamodb.eu-north-1.amazonaws.com");
  machine.files["/home/me/.aws/config"] = "damaged";
  EXPECT_FALSE(find_endpoint("dynamodb", {"eu-west-1", ""}, machine));
  EXPECT_EQ(find_endpoint("dynamodb", {"eu-west-1", "http://localhost:8000"}, machine)->region, "eu-west-1");
}

}  // namespace
}  // namespace holdfast::store::dynamodb
