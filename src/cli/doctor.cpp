#include <algorithm>
#include <chrono>
#include <memory>

#include "cli/doctor_rows.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/store_session.hpp"
#include "store/json.hpp"

namespace holdfast::cli {

namespace {

using namespace std::chrono_literals;
using store::Finding;
using store::Findings;
using store::Health;

struct DoctorSettings {
  std::string store = "sqlite:holdfast.db";
  Duration skew = 1s;  // what `worker` has by default: a twentieth of 20 s
  Duration timeout = 1min;
  std::int64_t max_rows = 100'000;
  bool json = false;
};

void append(Findings& to, Findings more) {
  std::move(more.begin(), more.end(), std::back_inserter(to));
}

Findings look_at_rows(StoreSession& session, const DoctorSettings& settings, Instant deadline) {
  RowsExamined rows;
  std::string from, stopped_by;
  do {
    auto page = session.walk(from, deadline);
    if (!page.ok()) {
      stopped_by = page.error.detail;
      break;
    }
    rows.take(page.value, session.wall());
    from = std::move(page.value.next);
    if (from.empty()) break;
    if (rows.count() >= static_cast<std::size_t>(settings.max_rows)) stopped_by = "--max-rows is reached";
    if (session.instant() >= deadline) stopped_by = "--timeout is over";
  } while (stopped_by.empty());
  return rows.findings(stopped_by);
}

/// What a store that opens has to show.
Findings examine(StoreSession& session, const DoctorSettings& settings) {
  const Instant deadline = session.instant() + settings.timeout;
  store::Diagnosis diagnosis = session.diagnose(deadline);
  Findings findings = std::move(diagnosis.findings);
  const bool clock_told =
      std::any_of(findings.begin(), findings.end(), [](const Finding& finding) { return finding.check == "clock"; });
  if (!clock_told) findings.push_back(judge_clock(diagnosis.clock, settings.skew, diagnosis.no_clock));
  if (diagnosis.can_race) {
    findings.push_back(judge_race(session.race(deadline)));
  } else {
    findings.push_back({"exclusion", Health::not_checked, "a scratch row cannot be read and written", ""});
  }
  if (diagnosis.can_walk && settings.max_rows > 0) {
    append(findings, look_at_rows(session, settings, deadline));
  } else {
    findings.push_back(
        {"rows", Health::not_checked, settings.max_rows == 0 ? "--max-rows is 0" : "not all rows can be read", ""});
  }
  return findings;
}

std::string as_json(const std::string& store, const Findings& findings, bool healthy) {
  Value::List checks;
  for (const Finding& finding : findings) {
    Value::Map check;
    check.emplace("check", finding.check);
    check.emplace("verdict", to_string(finding.health));
    check.emplace("found", finding.detail);
    check.emplace("advice", finding.advice.empty() ? Value(nullptr) : Value(finding.advice));
    checks.emplace_back(std::move(check));
  }
  Value::Map report;
  report.emplace("store", store);
  report.emplace("healthy", healthy);
  report.emplace("checks", std::move(checks));
  return store::to_json(report) + "\n";
}

std::string as_table(const Findings& findings) {
  Table table({{"CHECK"}, {"VERDICT"}, {"FOUND"}});
  std::string advice;
  for (const Finding& finding : findings) {
    table.add({one_line(finding.check), std::string(to_string(finding.health)), one_line(finding.detail)});
    if (!finding.advice.empty()) advice += "  " + one_line(finding.check + ": " + finding.advice) + '\n';
  }
  return table.render() + (advice.empty() ? "" : "\nWhat to do:\n" + advice);
}

Result<void> run_doctor(const DoctorSettings& settings) {
  if (settings.timeout < 1s) return fail(Code::usage, "--timeout: give it 1s at least");
  Findings findings;
  std::string name = settings.store;
  {
    const auto session = StoreSession::open(settings.store, StoreSession::Create::never);
    if (session) {
      name = (*session)->name();
      findings = examine(**session, settings);
    } else if (session.error().code == Code::usage && StoreSession::check(settings.store).has_value()) {
      findings.push_back(
          {"reachable", Health::failed, session.error().detail, "set what it names, or another --store"});
    } else if (session.error().code == Code::usage) {
      return tl::unexpected<Error>(session.error());
    } else {
      findings.push_back({"reachable", Health::failed, session.error().detail,
                          "make it with 'holdfast init', or name another with --store"});
    }
  }
  const auto failed = std::count_if(findings.begin(), findings.end(),
                                    [](const Finding& finding) { return finding.health == Health::failed; });
  const std::string report = settings.json ? as_json(name, findings, failed == 0) : as_table(findings);
  if (auto printed = print(report); !printed) return printed;
  if (failed == 0) return {};
  return fail(Code::unavailable, "doctor: " + std::to_string(failed) + (failed == 1 ? " check" : " checks") +
                                     " failed: the report says what to do");
}

}  // namespace

void add_doctor(Setup setup) {
  const auto settings = std::make_shared<DoctorSettings>();
  CLI::App& app =
      add_command(setup,
                  {.name = "doctor",
                   .description = "look whether a fleet can work on this table, and say what to do where it cannot",
                   .example = "doctor --store 'dynamodb://feeds?region=eu-west-1' --skew 1s",
                   .exit_codes = "something that workers need is missing or wrong: the report says what to do"},
                  [settings] { return run_doctor(*settings); });
  add_store(app, settings->store);
  add_duration(app, "--skew", settings->skew,
               "what the workers run with: how far apart the clocks of two machines may be");
  add_duration(app, "--timeout", settings->timeout, "how long all of it may take");
  add_number(app, "--max-rows", settings->max_rows, 0, 1'000'000'000,
             "how many rows are looked at; each is read, which DynamoDB bills");
  add_switch(app, "--json", settings->json, "print a JSON object");
}

}  // namespace holdfast::cli
