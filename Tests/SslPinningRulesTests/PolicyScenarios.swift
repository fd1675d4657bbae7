import SslPinningRules

/// What every rule of a policy accepts and what it refuses.
enum PolicyScenarios {
  static let untrusted = ChainFault.untrusted(code: 20, reason: "no issuer")
  static let host = "www.example.com"
  static let listed = PolicyEntry.of(host, leaf: [1])

  static let chainFirst: [PolicyScenario] = [
    .init(
      name: "accepts a pinned leaf on a valid path", entries: [listed], chain: .valid([1, 8, 9]),
      verdict: .accepts(.matched)),
    .init(
      name: "refuses a path that is not valid, pinned or not", entries: [listed],
      chain: .failed(untrusted), presented: [1, 8], verdict: .refuses(.chainRejected(untrusted))),
    .init(
      name: "refuses a certificate for other names, pinned or not", entries: [listed],
      chain: .failed(.wrongHost), presented: [1, 8], verdict: .refuses(.chainRejected(.wrongHost))),
    .init(
      name: "refuses proof that is for another host", entries: [listed],
      chain: .validFor("example.org", [1, 8, 9]), verdict: .refuses(.chainRejected(.wrongHost))),
    .init(
      name: "refuses an invalid path in report-only",
      entries: [.of(host, leaf: [1], .reportOnly)], chain: .failed(untrusted), presented: [1],
      verdict: .refuses(.chainRejected(untrusted))),
    .init(
      name: "refuses an invalid path of an unlisted host under system trust",
      unlistedHosts: .systemTrust, chain: .failed(untrusted),
      verdict: .refuses(.chainRejected(untrusted))),
    .init(
      name: "matches the validated path and not what was sent: leaf", entries: [listed],
      chain: .valid([2, 8, 9]), presented: [1, 8], verdict: .refuses(.mismatch(.leaf))),
    .init(
      name: "matches the validated path and not what was sent: CA",
      entries: [.of(host, ca: [7])], chain: .valid([2, 8, 9]), presented: [2, 7, 8],
      verdict: .refuses(.mismatch(.ca))),
  ]

  static let roles: [PolicyScenario] = [
    .init(
      name: "refuses another leaf", entries: [listed], chain: .valid([2, 8, 9]),
      verdict: .refuses(.mismatch(.leaf))),
    .init(
      name: "a leaf pin does not match above the leaf", entries: [.of(host, leaf: [8])],
      chain: .valid([2, 8, 9]), verdict: .refuses(.mismatch(.leaf))),
    .init(
      name: "a CA pin matches the intermediate", entries: [.of(host, ca: [8])],
      chain: .valid([2, 8, 9]), verdict: .accepts(.matched)),
    .init(
      name: "a CA pin matches the anchor", entries: [.of(host, ca: [9])],
      chain: .valid([2, 8, 9]), verdict: .accepts(.matched)),
    .init(
      name: "a CA pin does not match the leaf", entries: [.of(host, ca: [2])],
      chain: .valid([2, 8, 9]), verdict: .refuses(.mismatch(.ca))),
    .init(
      name: "a CA pin does not match a leaf that is its own anchor", entries: [.of(host, ca: [2])],
      chain: .valid([2]), verdict: .refuses(.mismatch(.ca))),
    .init(
      name: "any of several leaf pins matches", entries: [.of(host, leaf: [1, 2, 3])],
      chain: .valid([3, 8]), verdict: .accepts(.matched)),
    .init(
      name: "both lists must match: both do", entries: [.of(host, leaf: [1], ca: [8])],
      chain: .valid([1, 8, 9]), verdict: .accepts(.matched)),
    .init(
      name: "both lists must match: the leaf does not", entries: [.of(host, leaf: [1], ca: [8])],
      chain: .valid([2, 8, 9]), verdict: .refuses(.mismatch(.leaf))),
    .init(
      name: "both lists must match: no CA does", entries: [.of(host, leaf: [1], ca: [7])],
      chain: .valid([1, 8, 9]), verdict: .refuses(.mismatch(.ca))),
    .init(
      name: "one list is enough under any: leaf",
      entries: [.of(host, leaf: [1], ca: [7], match: .any)], chain: .valid([1, 8, 9]),
      verdict: .accepts(.matched)),
    .init(
      name: "one list is enough under any: CA",
      entries: [.of(host, leaf: [3], ca: [8], match: .any)], chain: .valid([1, 8, 9]),
      verdict: .accepts(.matched)),
    .init(
      name: "under any one list must match all the same",
      entries: [.of(host, leaf: [3], ca: [7], match: .any)], chain: .valid([1, 8, 9]),
      verdict: .refuses(.mismatch(.leaf))),
    .init(
      name: "roles stay apart under any",
      entries: [.of(host, leaf: [8], ca: [1], match: .any)], chain: .valid([1, 8, 9]),
      verdict: .refuses(.mismatch(.leaf))),
  ]

  static let union: [PolicyScenario] = [
    .init(
      name: "pins of all matching patterns are united: exact",
      entries: [.of(host, leaf: [1]), .of("*.example.com", leaf: [2]), .of("**.com", leaf: [3])],
      chain: .valid([1, 9]), verdict: .accepts(.matched)),
    .init(
      name: "pins of all matching patterns are united: one label",
      entries: [.of(host, leaf: [1]), .of("*.example.com", leaf: [2]), .of("**.com", leaf: [3])],
      chain: .valid([2, 9]), verdict: .accepts(.matched)),
    .init(
      name: "pins of all matching patterns are united: any depth",
      entries: [.of(host, leaf: [1]), .of("*.example.com", leaf: [2]), .of("**.com", leaf: [3])],
      chain: .valid([3, 9]), verdict: .accepts(.matched)),
    .init(
      name: "two entries of one pattern are united",
      entries: [.of(host, leaf: [1]), .of("WWW.example.com.", leaf: [2])], chain: .valid([2, 9]),
      verdict: .accepts(.matched)),
    .init(
      name: "patterns that do not match contribute nothing",
      entries: [listed, .of("*.www.example.com", leaf: [2]), .of("example.com", leaf: [2])],
      chain: .valid([2, 9]), verdict: .refuses(.mismatch(.leaf))),
    .init(
      name: "a CA pin of another pattern makes both lists count",
      entries: [listed, .of("**.example.com", ca: [7])], chain: .valid([1, 8, 9]),
      verdict: .refuses(.mismatch(.ca))),
    .init(
      name: "of any and all, all counts",
      entries: [.of(host, leaf: [1], ca: [7], match: .any), .of("*.example.com", leaf: [2])],
      chain: .valid([1, 8, 9]), verdict: .refuses(.mismatch(.ca))),
    .init(
      name: "any counts where every entry says so",
      entries: [
        .of(host, leaf: [1], ca: [7], match: .any), .of("*.example.com", leaf: [2], match: .any),
      ], chain: .valid([1, 8, 9]), verdict: .accepts(.matched)),
    .init(
      name: "of report-only and enforce, enforce counts",
      entries: [.of(host, leaf: [1], .reportOnly), .of("*.example.com", leaf: [3])],
      chain: .valid([2, 9]), verdict: .refuses(.mismatch(.leaf))),
    .init(
      name: "report-only counts where every entry says so",
      entries: [
        .of(host, leaf: [1], .reportOnly), .of("*.example.com", leaf: [3], .reportOnly),
      ], chain: .valid([2, 9]), verdict: .accepts(.mismatch(.leaf))),
    .init(
      name: "an address matches only its own entry",
      entries: [.of("10.0.0.1", leaf: [1]), .of("**.example.com", leaf: [2])], host: "10.0.0.1",
      chain: .valid([1, 9]), verdict: .accepts(.matched)),
    .init(
      name: "a v4-mapped address is another host", entries: [.of("10.0.0.1", leaf: [1])],
      host: "::ffff:10.0.0.1", chain: .valid([1, 9]), verdict: .refuses(.unlisted)),
  ]

  static let denied: [PolicyScenario] = [
    .init(
      name: "a denied leaf is refused though it is pinned", entries: [listed], denied: [1],
      chain: .valid([1, 8, 9]), verdict: .refuses(.denied(.test(1)))),
    .init(
      name: "a denied intermediate is refused", entries: [listed], denied: [8],
      chain: .valid([1, 8, 9]), verdict: .refuses(.denied(.test(8)))),
    .init(
      name: "a denied anchor is refused", entries: [listed], denied: [9],
      chain: .valid([1, 8, 9]), verdict: .refuses(.denied(.test(9)))),
    .init(
      name: "a denied key that was sent beside the path refuses nothing", entries: [listed],
      denied: [7], chain: .valid([1, 8, 9]), presented: [1, 7, 8], verdict: .accepts(.matched)),
    .init(
      name: "report-only does not forgive a denied key",
      entries: [.of(host, leaf: [1], .reportOnly)], denied: [8], chain: .valid([1, 8, 9]),
      verdict: .refuses(.denied(.test(8)))),
    .init(
      name: "system trust for unlisted hosts does not forgive a denied key", denied: [8],
      unlistedHosts: .systemTrust, chain: .valid([1, 8, 9]),
      verdict: .refuses(.denied(.test(8)))),
    .init(
      name: "a bad chain is told before a denied key", entries: [listed], denied: [1],
      chain: .failed(untrusted), presented: [1], verdict: .refuses(.chainRejected(untrusted))),
  ]

  static let expiry: [PolicyScenario] = [
    .init(
      name: "a pin counts at its expiry and for 26 hours",
      entries: [.of(host, leaf: [1], expires: 1_000_000)], chain: .valid([1, 9]),
      now: 1_000_000 + 26 * 3600, verdict: .accepts(.matched)),
    .init(
      name: "a host whose pins have all expired is refused",
      entries: [.of(host, leaf: [1], expires: 1_000_000)], chain: .valid([1, 9]),
      now: 1_000_001 + 26 * 3600, verdict: .refuses(.noLivePin)),
    .init(
      name: "an expired pin does not count beside a live one",
      entries: [.of(host, leaf: [1], expires: 0), .of(host, leaf: [2])], chain: .valid([1, 9]),
      verdict: .refuses(.mismatch(.leaf))),
    .init(
      name: "a live pin counts beside an expired one",
      entries: [.of(host, leaf: [1], expires: 0), .of(host, leaf: [2])], chain: .valid([2, 9]),
      verdict: .accepts(.matched)),
    .init(
      name: "of one pin that stands twice the later expiry counts",
      entries: [.of(host, leaf: [1], expires: 0), .of("*.example.com", leaf: [1])],
      chain: .valid([1, 9]), verdict: .accepts(.matched)),
    .init(
      name: "expired leaf pins are not replaced by live CA pins",
      entries: [.of(host, leaf: [1], expires: 0), .of(host, ca: [9])], chain: .valid([1, 9]),
      verdict: .refuses(.noLivePin)),
    .init(
      name: "expired CA pins are not replaced by live leaf pins",
      entries: [.of(host, ca: [9], expires: 0), .of(host, leaf: [1])], chain: .valid([1, 9]),
      verdict: .refuses(.noLivePin)),
    .init(
      name: "under any live CA pins are enough beside expired leaf pins",
      entries: [
        .of(host, leaf: [1], expires: 0, match: .any), .of(host, ca: [9], match: .any),
      ], chain: .valid([2, 9]), verdict: .accepts(.matched)),
    .init(
      name: "an entry without any pin keeps its host listed and refused",
      entries: [.of(host)], unlistedHosts: .systemTrust, chain: .valid([1, 9]),
      verdict: .refuses(.noLivePin)),
    .init(
      name: "an entry without any pin takes nothing from another's",
      entries: [.of(host), .of("*.example.com", leaf: [1])], chain: .valid([1, 9]),
      verdict: .accepts(.matched)),
    .init(
      name: "report-only forgives expired pins",
      entries: [.of(host, leaf: [1], expires: 0, .reportOnly)], chain: .valid([1, 9]),
      verdict: .accepts(.noLivePin)),
    .init(
      name: "report-only forgives a missing CA",
      entries: [.of(host, ca: [7], .reportOnly)], chain: .valid([1, 9]),
      verdict: .accepts(.mismatch(.ca))),
  ]

  static let unlisted: [PolicyScenario] = [
    .init(
      name: "an unlisted host is refused", entries: [listed], host: "example.org",
      chain: .valid([1, 9]), verdict: .refuses(.unlisted)),
    .init(
      name: "an empty list is closed", chain: .valid([1, 9]), verdict: .refuses(.unlisted)),
    .init(
      name: "an unlisted host is accepted where the app chose system trust", entries: [listed],
      unlistedHosts: .systemTrust, host: "example.org", chain: .valid([4, 9]),
      verdict: .accepts(.unlisted)),
    .init(
      name: "system trust for unlisted hosts changes nothing for listed ones", entries: [listed],
      unlistedHosts: .systemTrust, chain: .valid([4, 9]), verdict: .refuses(.mismatch(.leaf))),
  ]

  static let pinnedKeysOnly: [PolicyScenario] = [
    .init(
      name: "the leaf alone decides: pinned", entries: [listed], trust: .pinnedKeysOnly,
      chain: .failed(untrusted), presented: [1, 8], verdict: .accepts(.matched)),
    .init(
      name: "the leaf alone decides: another", entries: [listed], trust: .pinnedKeysOnly,
      chain: .failed(untrusted), presented: [2, 1], verdict: .refuses(.mismatch(.leaf))),
    .init(
      name: "a valid path does not help another leaf", entries: [listed], trust: .pinnedKeysOnly,
      chain: .valid([2, 8, 9]), verdict: .refuses(.mismatch(.leaf))),
    .init(
      name: "the leaf is what was sent, not what was validated", entries: [listed],
      trust: .pinnedKeysOnly, chain: .valid([1, 8, 9]), presented: [2],
      verdict: .refuses(.mismatch(.leaf))),
    .init(
      name: "a denied key refuses wherever it was sent", entries: [listed], denied: [8],
      trust: .pinnedKeysOnly, chain: .failed(untrusted), presented: [1, 8],
      verdict: .refuses(.denied(.test(8)))),
    .init(
      name: "an unlisted host is refused", trust: .pinnedKeysOnly, chain: .failed(untrusted),
      presented: [1], verdict: .refuses(.unlisted)),
    .init(
      name: "expired pins do not count", entries: [.of(host, leaf: [1], expires: 0)],
      trust: .pinnedKeysOnly, chain: .failed(untrusted), presented: [1],
      verdict: .refuses(.noLivePin)),
    .init(
      name: "nothing readable is refused", entries: [listed], trust: .pinnedKeysOnly,
      chain: .failed(untrusted), presented: [],
      verdict: .refuses(
        .chainRejected(.unreadable("the server sent no readable certificate")))),
  ]

  private static let withCA = PolicyEntry.of("b.example.com", leaf: [1], ca: [9])

  /// Under `.pinnedKeysOnly`, from a list that somebody else keeps.
  static let uncheckable: [PolicyScenario] = [
    .init(
      name: "CA pins refuse their hosts", entries: [listed, withCA], isListed: true,
      trust: .pinnedKeysOnly, host: "b.example.com", chain: .valid([1, 8, 9]),
      verdict: .refuses(.uncheckable(.ca))),
    .init(
      name: "CA pins refuse no other host", entries: [listed, withCA], isListed: true,
      trust: .pinnedKeysOnly, chain: .failed(untrusted), presented: [1],
      verdict: .accepts(.matched)),
    .init(
      name: "a CA pin alone is not met by a leaf", entries: [.of(host, ca: [1])], isListed: true,
      trust: .pinnedKeysOnly, chain: .failed(untrusted), presented: [1],
      verdict: .refuses(.uncheckable(.ca))),
    .init(
      name: "CA pins of a pattern refuse every host that it matches",
      entries: [listed, .of("*.example.com", ca: [9])], isListed: true, trust: .pinnedKeysOnly,
      chain: .failed(untrusted), presented: [1], verdict: .refuses(.uncheckable(.ca))),
    .init(
      name: "where any list is enough, the leaf decides",
      entries: [.of(host, leaf: [1], ca: [9], match: .any)], isListed: true,
      trust: .pinnedKeysOnly, chain: .failed(untrusted), presented: [1],
      verdict: .accepts(.matched)),
    .init(
      name: "where any list is enough, another leaf is refused",
      entries: [.of(host, leaf: [1], ca: [9], match: .any)], isListed: true,
      trust: .pinnedKeysOnly, chain: .valid([2, 8, 9]), verdict: .refuses(.mismatch(.leaf))),
    .init(
      name: "report-only forgives nothing where the pin is all there is",
      entries: [.of(host, leaf: [1], .reportOnly)], isListed: true, trust: .pinnedKeysOnly,
      chain: .failed(untrusted), presented: [2], verdict: .refuses(.mismatch(.leaf))),
    .init(
      name: "a denied key is denied all the same", entries: [withCA], isListed: true,
      denied: [1], trust: .pinnedKeysOnly, host: "b.example.com", chain: .failed(untrusted),
      presented: [1], verdict: .refuses(.denied(.test(1)))),
    .init(
      name: "under another mode the same list is met", entries: [listed, withCA], isListed: true,
      host: "b.example.com", chain: .valid([1, 8, 9]), verdict: .accepts(.matched)),
  ]

  static let all =
    chainFirst + roles + union + denied + expiry + unlisted + pinnedKeysOnly + uncheckable
}
