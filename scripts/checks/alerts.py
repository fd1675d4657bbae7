#!/usr/bin/env python3
"""Every alert rule of docs/alerts.yaml fires where it should and is silent beside it: `promtool` runs the rules over
the scenes below. A rule without both kinds of scene fails. Two stores in one Prometheus, each a job, neither hide nor add
up to anything: the scenes are run with two of them as well."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

RULES = Path(__file__).resolve().parent.parent.parent / "docs" / "alerts.yaml"
DAY = 86400


def steady(value, minutes=120):
    return f"{value}+0x{minutes}"


def alerts(kind, value=1):
    return {f'alerts{{kind="{kind}"}}': steady(value)}


def counted(series, minute, by):
    """A counter that grows once."""
    return {series: f"0+0x{minute} {by}+0x100"}


# For each rule: whether it fires, at which minute, and the series, without `ssl_pinning_`. Time begins at 0.
SCENES = {
    "Absent": [
        (True, 6, {}),
        (False, 4, {}),
        (False, 9, {"build_info": steady(1)}),
    ],
    "AppsRefused": [
        (True, 1, {'refusing{job="a",instance="1",kind="key-held"}': steady(1),
                   'leader{job="a",instance="1"}': steady(1)}),
        # A follower knows less: its word counts only while nobody leads.
        (False, 1, {'refusing{job="a",instance="1",kind="key-held"}': steady(0),
                    'refusing{job="a",instance="2",kind="key-held"}': steady(1),
                    'leader{job="a",instance="1"}': steady(1), 'leader{job="a",instance="2"}': steady(0)}),
        (True, 1, {'refusing{job="a",instance="2",kind="key-held"}': steady(1),
                   'leader{job="a",instance="2"}': steady(0), 'leader{job="b",instance="1"}': steady(1)}),
    ],
    "StoreAway": [
        (True, 3, {"store_awaited": steady(1)}),
        (False, 1, {"store_awaited": steady(1)}),
        (False, 3, {"store_awaited": steady(0)}),
    ],
    "ProposalWaits": [
        (True, 11, {"proposals": steady(1)}),
        (False, 9, {"proposals": steady(1)}),
        (False, 11, {"proposals": steady(0)}),
    ],
    "LooksFail": [
        (True, 11, {'errors{file="a.json"}': steady(1)}),
        (False, 11, {'errors{file="a.json"}': steady(0)}),
        (False, 28, {'errors{file="a.json"}': "1+0x9 0+0x9 1+0x9"}),
    ],
    "EndpointUnproved": [
        (True, 67, {'last_success_timestamp_seconds{endpoint="e"}': steady(0), "probe_interval_seconds": steady(60)}),
        (True, 6, {'last_probe_timestamp_seconds{endpoint="e"}': "0+60x100"}),
        (False, 67, {'last_success_timestamp_seconds{endpoint="e"}': steady(0),
                     "probe_interval_seconds": steady(3600)}),
        (False, 67, {'last_success_timestamp_seconds{endpoint="e",instance="1"}': steady(0),
                     "probe_interval_seconds": steady(60),
                     'last_success_timestamp_seconds{endpoint="e",instance="2"}': "0+60x100",
                     'last_probe_timestamp_seconds{endpoint="e",instance="2"}': "0+60x100"}),
    ],
    "NobodyLooks": [
        (True, 22, {'last_probe_timestamp_seconds{endpoint="e"}': steady(0), "probe_interval_seconds": steady(60)}),
        # A longer interval, and beyond it.
        (False, 80, {'last_probe_timestamp_seconds{endpoint="e"}': steady(0), "probe_interval_seconds": steady(3600)}),
        (True, 81, {'last_probe_timestamp_seconds{endpoint="e"}': steady(0), "probe_interval_seconds": steady(3600)}),
        (False, 22, {'last_probe_timestamp_seconds{endpoint="e",instance="1"}': steady(0),
                     "probe_interval_seconds": steady(60),
                     'last_probe_timestamp_seconds{endpoint="e",instance="2"}': "0+60x100"}),
    ],
    "ProbesLate": [
        (True, 15, {'probe_duration_seconds_sum{instance="1"}': "0+8000x30",
                    'probe_duration_seconds_sum{instance="2"}': steady(9)}),
        (False, 15, {'probe_duration_seconds_sum{instance="1"}': "0+7000x30"}),
        # The first probes of ten thousand endpoints, of 5 s each.
        *[(False, minute, {"probe_duration_seconds_sum": "0+15360x3 50000+1200x30"}) for minute in (7, 8, 9)],
        # The leader changed.
        (False, 15, {'probe_duration_seconds_sum{instance="1"}': "0+7000x12 84000+0x30",
                     'probe_duration_seconds_sum{instance="2"}': "0+0x12 0+7000x30"}),
    ],
    "InterceptionSuspected": [
        (True, 20, counted('probe_failures_total{cause="chain"}', 15, 5)),
        (True, 20, counted('probe_failures_total{cause="name"}', 15, 5)),
        (False, 20, counted('probe_failures_total{cause="timeout"}', 15, 50)),
        (False, 20, counted('probe_failures_total{cause="chain"}', 15, 2)),
    ],
    "ChainDisputed": [
        (True, 20, counted('probe_failures_total{cause="disagreement"}', 15, 5)),
        (False, 20, counted('probe_failures_total{cause="chain"}', 15, 5)),
    ],
    "UnannouncedKey": [
        (True, 20, counted('keys_published_total{announced="no"}', 15, 1)),
        (False, 20, counted('keys_published_total{announced="yes"}', 15, 1)),
        (False, 40, counted('keys_published_total{announced="no"}', 15, 1)),
    ],
    "MassChange": [(True, 1, alerts("mass-change")), (False, 1, alerts("mass-change", 0))],
    "KeyWithdrawn": [
        (True, 20, counted("keys_withdrawn_total", 15, 1)),
        (False, 20, {"keys_withdrawn_total": steady(7)}),
    ],
    "KeyUndecided": [
        (True, 1, alerts("key-undecided")), (True, 1, alerts("too-many-keys")),
        (False, 1, alerts("mass-change")),
    ],
    "StagedKeyUnshown": [(True, 1, alerts("staged-key-unshown")), (False, 1, alerts("storing"))],
    "LeftConfiguration": [(True, 1, alerts("left-configuration")), (False, 1, alerts("storing"))],
    "VantageBlocked": [(True, 1, alerts("vantage-blocked")), (False, 1, alerts("vantage-silent"))],
    "VantageSilent": [
        (True, 1, {'vantage_up{vantage="v"}': steady(0), 'vantage_up{vantage="w"}': steady(1)}),
        (False, 1, {'vantage_up{vantage="v",instance="1"}': steady(0),
                    'vantage_up{vantage="v",instance="2"}': steady(1)}),
    ],
    "CertificateExpiresSoon": [
        (True, 90, {'certificate_ends_timestamp_seconds{endpoint="e"}': steady(7 * DAY)}),
        # One server of several behind a balancer, met now and then.
        (True, 90, {'certificate_ends_timestamp_seconds{endpoint="e"}': " ".join(
            [f"{90 * DAY} {90 * DAY} {7 * DAY}"] * 60)}),
        (False, 90, {'certificate_ends_timestamp_seconds{endpoint="e"}': steady(8 * DAY)}),
    ],
    "CertificateExpired": [
        (True, 61, {'certificate_ends_timestamp_seconds{endpoint="e"}': steady(3600)}),
        (False, 59, {'certificate_ends_timestamp_seconds{endpoint="e"}': steady(3600)}),
        (False, 61, {'certificate_ends_timestamp_seconds{endpoint="e"}': steady(DAY)}),
    ],
    "TokenEnds": [
        (True, 1, {"token_ends_timestamp_seconds": steady(7 * DAY)}),
        (False, 1, {"token_ends_timestamp_seconds": steady(8 * DAY)}),
    ],
    "NotPublished": [
        (True, 2, alerts("signing")), (True, 2, alerts("storing")), (False, 2, alerts("mass-change")),
    ],
    "CopiesBehind": [
        (True, 2, {'copies_unwritten{lacking="yes",instance="1"}': steady(0),
                   'copies_unwritten{lacking="yes",instance="2"}': steady(1)}),
        (False, 2, {'copies_unwritten{lacking="yes"}': steady(0), 'copies_unwritten{lacking="no"}': steady(1)}),
        # It was written again at once.
        (False, 3, {'copies_unwritten{lacking="yes"}': "1 0+0x9"}),
    ],
    "DocumentOld": [
        (True, 2 * 1440 + 70, {'document_signed_timestamp_seconds{file="a"}': steady(0, 4000)}),
        (False, 2 * 1440 + 70, {'document_signed_timestamp_seconds{file="a",instance="1"}': steady(0, 4000),
                                'document_signed_timestamp_seconds{file="a",instance="2"}': steady(DAY, 4000)}),
    ],
    "DocumentExpired": [
        (True, 60, {'document_expires_timestamp_seconds{file="a"}': steady(3600)}),
        (False, 59, {'document_expires_timestamp_seconds{file="a"}': steady(3600)}),
        (False, 60, {'document_expires_timestamp_seconds{file="a",instance="1"}': steady(3600),
                     'document_expires_timestamp_seconds{file="a",instance="2"}': steady(DAY)}),
    ],
    "KeySetEnds": [
        (True, 90, {'document_key_set_expires_timestamp_seconds{file="a"}': steady(30 * DAY)}),
        (False, 90, {'document_key_set_expires_timestamp_seconds{file="a"}': steady(31 * DAY)}),
    ],
    "DocumentEmpty": [
        (True, 2, {'document_keys{file="a"}': steady(0)}),
        (False, 2, {'document_keys{file="a"}': steady(1)}),
    ],
    "DocumentWentBack": [
        (True, 9, {'document_version{file="a"}': "7+0x4 6+0x9", 'document_epoch{file="a"}': steady(1)}),
        (False, 9, {'document_version{file="a"}': "7+0x4 1+0x9", 'document_epoch{file="a"}': "1+0x4 2+0x9"}),
        (False, 9, {'document_version{file="a"}': "7+1x20", 'document_epoch{file="a"}': steady(1)}),
    ],
    "ServersDisagree": [
        (True, 6, {'document_version{file="a",instance="1"}': steady(7),
                   'document_version{file="a",instance="2"}': steady(6)}),
        (False, 6, {'document_version{file="a",instance="1"}': steady(7),
                    'document_version{file="b",instance="2"}': steady(6)}),
        (False, 6, {'document_version{file="a",job="a"}': steady(7), 'document_version{file="a",job="b"}': steady(6)}),
    ],
    "NoLeader": [
        (True, 3, {'leader{instance="1"}': steady(0), 'leader{instance="2"}': steady(0)}),
        (False, 3, {'leader{instance="1"}': steady(0), 'leader{instance="2"}': steady(1)}),
    ],
    "WatchingStuck": [(True, 1, {"watching_stuck": steady(1)}), (False, 1, {"watching_stuck": steady(0)})],
    "ListenerCertificateExpires": [
        (True, 1, {"listener_certificate_ends_timestamp_seconds": steady(7 * DAY)}),
        (False, 1, {"listener_certificate_ends_timestamp_seconds": steady(8 * DAY)}),
    ],
    "ListenerCertificateExpired": [
        (True, 61, {"listener_certificate_ends_timestamp_seconds": steady(3600)}),
        (False, 59, {"listener_certificate_ends_timestamp_seconds": steady(3600)}),
    ],
    "TwoLeaders": [
        (True, 3, {'leader{instance="1"}': steady(1), 'leader{instance="2"}': steady(1)}),
        (False, 3, {'leader{instance="1"}': steady(1), 'leader{instance="2"}': steady(0)}),
        (False, 9, {'leader{instance="1"}': "1+0x4 0+0x9", 'leader{instance="2"}': "0+0x3 1+0x9"}),
    ],
    "ApprovalWaits": [
        (True, 16, {"pending_approvals": steady(1)}), (False, 14, {"pending_approvals": steady(1)}),
        (False, 16, {"pending_approvals": steady(0)}),
    ],
    "OpenAlerts": [(True, 6, alerts("unreachable")), (False, 6, alerts("unreachable", 0))],
    "StoreNotBelieved": [
        (True, 1, alerts("seal-broken")), (True, 1, alerts("other-signing-key")), (False, 1, alerts("store-lost")),
    ],
    "StoreLost": [(True, 1, alerts("store-lost")), (False, 1, alerts("seal-broken"))],
    "StoreFails": [
        (True, 12, {"store_errors_total": "0+1x20"}),
        (False, 20, counted("store_errors_total", 2, 1)),
    ],
    "StoreSlow": [
        (True, 20, {'store_duration_seconds_bucket{le="1",operation="get"}': "0+90x30",
                    'store_duration_seconds_bucket{le="5",operation="get"}': "0+100x30",
                    'store_duration_seconds_bucket{le="+Inf",operation="get"}': "0+100x30"}),
        (False, 20, {'store_duration_seconds_bucket{le="1",operation="get"}': "0+100x30",
                     'store_duration_seconds_bucket{le="5",operation="get"}': "0+100x30",
                     'store_duration_seconds_bucket{le="+Inf",operation="get"}': "0+100x30"}),
    ],
    "RequestsFail": [
        (True, 12, {'http_requests_total{code="500",path_class="document"}': "0+2x30",
                    'http_requests_total{code="200",path_class="document"}': "0+98x30"}),
        (False, 12, {'http_requests_total{code="404",path_class="document"}': "0+2x30",
                     'http_requests_total{code="200",path_class="document"}': "0+98x30"}),
        # A server that is not ready says so by 503, and is asked all the time.
        (False, 12, {'http_requests_total{code="503",path_class="health"}': "0+9x30",
                     'http_requests_total{code="200",path_class="document"}': "0+98x30"}),
    ],
    "ReportsRise": [
        (True, 1500, {'report_chains_total{chain="verified"}': "0+0x1490 100+0x20"}),
        (False, 1500, {'report_chains_total{chain="unverified"}': "0+0x1490 100+0x20"}),
        # As many as the day before.
        (False, 1500, {'report_chains_total{chain="verified"}': "0+3x1600"}),
    ],
    "Interception": [
        (True, 1, {'reports_by_class{class="interception"}': steady(1)}),
        (False, 1, {'reports_by_class{class="proxy"}': steady(1)}),
    ],
    "ClockDoubted": [(True, 2, {"clock_believed": steady(0)}), (False, 2, {"clock_believed": steady(1)})],
    "ReportsNotKept": [
        (True, 1, {"reports_set_aside_total": steady(1), "reports_readable": steady(1)}),
        (True, 1, {"reports_set_aside_total": steady(0), "reports_readable": steady(0)}),
        (False, 1, {"reports_set_aside_total": steady(0), "reports_readable": steady(1)}),
    ],
    "NotificationsFail": [
        (True, 20, counted('notifications_total{outcome="lost",receiver="webhook"}', 15, 1)),
        (True, 12, {'notifications_waiting{receiver="webhook"}': steady(1)}),
        (False, 20, counted('notifications_total{outcome="sent",receiver="webhook"}', 15, 1)),
        (False, 12, {'notifications_waiting{receiver="webhook"}': "1 0 1 0 1 0 1 0 1 0 1 0 1 0"}),
    ],
    "ConfigurationRefused": [
        (True, 1, {"configuration_reload_success": steady(0)}),
        (False, 1, {"configuration_reload_success": steady(1)}),
    ],
    "LogDropped": [
        (True, 20, counted("log_dropped_total", 15, 1)), (False, 20, {"log_dropped_total": steady(3)}),
    ],
    "SeriesRefused": [
        (True, 20, counted('series_refused_total{metric="m"}', 15, 1)),
        (False, 20, {'series_refused_total{metric="m"}': steady(3)}),
    ],
}


def in_job(series, job):
    return {f'{name.removesuffix("}")},job="{job}"}}' if "{" in name else f'{name}{{job="{job}"}}': values
            for name, values in series.items()}


def with_two_stores(scenes):
    """It fires for the store where it should, though all is well with the other one, and not for that one; and two stores
    that are well stay silent. What follows the series is the job that is meant."""
    own = [each for each in scenes if not any("job=" in name for name in each[2])]
    well = [(minute, series) for fires, minute, series in own if not fires]
    for minute, series in well:
        yield False, minute, in_job(series, "a") | in_job(series, "b"), ""
    for _, minute, series in [each for each in own if each[0]]:
        for other in [other for at, other in well if at == minute]:
            both = in_job(series, "a") | in_job(other, "b")
            yield from [(True, minute, both, "a"), (False, minute, both, "b")]


def block(rules, name):
    return "".join(each for each in re.split(r"(?m)^(?=      - alert:)", rules)
                   if each.startswith(f"      - alert: SslPinning{name}\n"))


def scenes_of(rules, name):
    scenes = SCENES.get(name, [])
    return [(*each, "") for each in scenes] + (list(with_two_stores(scenes)) if "by (job" in block(rules, name) else [])


def scene(rule, fires, minute, series, job):
    of = f',job="{job}"' if job else ""
    lines = [f"  - interval: 1m\n    name: {rule} at {minute} min\n    input_series:"]
    lines += [f"      - series: 'ssl_pinning_{name}'\n        values: '{values}'" for name, values in series.items()]
    if not series:
        lines.append("      - series: 'up'\n        values: '1+0x100'")
    lines.append(f"""    promql_expr_test:
      - expr: count(ALERTS{{alertname="SslPinning{rule}",alertstate="firing"{of}}}) > bool 0 or vector(0)
        eval_time: {minute}m
        exp_samples: [{{labels: '{{}}', value: {int(fires)}}}]""")
    return "\n".join(lines)


def unmet(rules):
    """The rules that lack a scene in which they fire, or one in which they are silent, or that go by job and have no two of
    these at one minute; and scenes of no rule."""
    names = re.findall(r"- alert: SslPinning(\w+)", rules)
    return [name for name in names if {fires for fires, _, _ in SCENES.get(name, [])} != {True, False}
            or "by (job" in block(rules, name)
            and not any(fires and 'job="b"' in key for fires, _, series, _ in scenes_of(rules, name) for key in series)] + \
        [name for name in SCENES if name not in names]


def run(rules, name, scenes):
    """What promtool says of one rule alone; empty if all scenes are as they say."""
    head = rules[:rules.index("      - alert:")]
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "alerts.yaml").write_text(head + block(rules, name))
        tests = "rule_files: [alerts.yaml]\nevaluation_interval: 1m\ntests:\n" + "\n".join(scenes) + "\n"
        Path(directory, "tests.yaml").write_text(tests)
        ended = subprocess.run(
            ["promtool", "test", "rules", "tests.yaml"], cwd=directory, capture_output=True, text=True)
        return "" if ended.returncode == 0 else ended.stdout + ended.stderr


def self_test(rules):
    """Each scene fails if it says the opposite."""
    for name in SCENES:
        scenes = scenes_of(rules, name)
        wrong = [scene(name, not fires, *rest) for fires, *rest in scenes]
        failures = run(rules, name, wrong).count("exp:")
        if failures != len(wrong):
            return f"of {len(wrong)} false scenes of {name}, {failures} fail"
    return "" if unmet(rules + "\n- alert: SslPinningNew\n") == ["New"] else "a rule without scenes passes"


def check(rules):
    missing = unmet(rules)
    if missing:
        return f"{', '.join(missing)}: no scene in which it fires, or none in which it is silent (by job: both at one minute)"
    return "".join(run(rules, name, [scene(name, *each) for each in scenes_of(rules, name)]) for name in SCENES)


fault = (self_test if "--self-test" in sys.argv else check)(RULES.read_text())
if fault:
    print(f"docs/alerts.yaml: {fault}")
    sys.exit(1)
