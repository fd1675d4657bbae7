import SslPinningRules

/// What Apple's rules accept and what they refuse, rule by rule.
enum PinnedDomainsScenarios {
  static let www = "www.example.com"
  static let yes = PropertyListValue.boolean(true)

  static let roles: [PinnedDomainsScenario] = [
    .init(
      name: "a leaf identity matches the leaf", domains: [www: .domain(leaf: [1])],
      verdict: .matches),
    .init(
      name: "a leaf identity matches no certificate above the leaf",
      domains: [www: .domain(leaf: [8, 9])], verdict: .refuses(.mismatch(.leaf))),
    .init(
      name: "a CA identity matches the intermediate", domains: [www: .domain(ca: [8])],
      verdict: .matches),
    .init(
      name: "a CA identity matches the root", domains: [www: .domain(ca: [9])], verdict: .matches),
    .init(
      name: "a CA identity never matches the leaf", domains: [www: .domain(ca: [1])],
      verdict: .refuses(.mismatch(.ca))),
    .init(
      name: "a CA identity never matches a leaf that stands alone",
      domains: [www: .domain(ca: [1])],
      path: [1], verdict: .refuses(.mismatch(.ca))),
    .init(
      name: "one identity of a list is enough", domains: [www: .domain(leaf: [5, 1, 6])],
      verdict: .matches),
    .init(
      name: "both lists match", domains: [www: .domain(leaf: [1], ca: [9])], verdict: .matches),
    .init(
      name: "of both lists only the leaf's matches", domains: [www: .domain(leaf: [1], ca: [7])],
      verdict: .refuses(.mismatch(.ca))),
    .init(
      name: "of both lists only the CAs' matches", domains: [www: .domain(leaf: [2], ca: [9])],
      verdict: .refuses(.mismatch(.leaf))),
    .init(
      name: "with neither list a host is not pinned", domains: [www: .domain(subdomains: yes)],
      verdict: .leftToTheSystem),
    .init(
      name: "a host without an entry is not pinned", domains: ["example.org": .domain(leaf: [1])],
      path: [4, 9], verdict: .leftToTheSystem),
  ]

  static let subdomains: [PinnedDomainsScenario] = [
    .init(
      name: "subdomains are covered with one more label",
      domains: ["example.com": .domain(leaf: [1], subdomains: yes)], verdict: .matches),
    .init(
      name: "subdomains that are covered are refused another key",
      domains: ["example.com": .domain(leaf: [2], subdomains: yes)],
      verdict: .refuses(.mismatch(.leaf))),
    .init(
      name: "subdomains are not covered with two more labels",
      domains: ["example.com": .domain(leaf: [2], subdomains: yes)], host: "a.www.example.com",
      verdict: .leftToTheSystem),
    .init(
      name: "the domain itself is covered beside its subdomains",
      domains: ["example.com": .domain(leaf: [2], subdomains: yes)], host: "example.com",
      verdict: .refuses(.mismatch(.leaf))),
    .init(
      name: "a name that only ends alike is no subdomain",
      domains: ["example.com": .domain(leaf: [2], subdomains: yes)], host: "badexample.com",
      verdict: .leftToTheSystem),
    .init(
      name: "subdomains are not covered by default",
      domains: ["example.com": .domain(leaf: [2])], verdict: .leftToTheSystem),
    .init(
      name: "NSIncludesSubdomains false covers none",
      domains: ["example.com": .domain(leaf: [2], subdomains: .boolean(false))],
      verdict: .leftToTheSystem),
    .init(
      name: "NSIncludesSubdomains as the number 1 covers none",
      domains: ["example.com": .domain(leaf: [2], subdomains: .integer(1))],
      verdict: .leftToTheSystem),
    .init(
      name: "NSIncludesSubdomains as the text YES covers none",
      domains: ["example.com": .domain(leaf: [2], subdomains: .string("YES"))],
      verdict: .leftToTheSystem),
    .init(
      name: "NSIncludesSubdomains that is no boolean leaves the domain itself pinned",
      domains: ["example.com": .domain(leaf: [2], subdomains: .integer(1))], host: "example.com",
      verdict: .refuses(.mismatch(.leaf))),
  ]

  static let united: [PinnedDomainsScenario] = [
    .init(
      name: "own and parent identities unite: the parent's matches",
      domains: [
        www: .domain(leaf: [2]), "example.com": .domain(leaf: [1], subdomains: yes),
      ], verdict: .matches),
    .init(
      name: "own and parent identities unite: the own matches",
      domains: [
        www: .domain(leaf: [1]), "example.com": .domain(leaf: [2], subdomains: yes),
      ], verdict: .matches),
    .init(
      name: "own and parent lists unite per list: both lists are there, both match",
      domains: [www: .domain(leaf: [1]), "example.com": .domain(ca: [9], subdomains: yes)],
      verdict: .matches),
    .init(
      name: "own and parent lists unite per list: both lists are there, one does not match",
      domains: [www: .domain(leaf: [1]), "example.com": .domain(ca: [7], subdomains: yes)],
      verdict: .refuses(.mismatch(.ca))),
    .init(
      name: "a parent that does not include subdomains adds nothing",
      domains: [www: .domain(leaf: [2]), "example.com": .domain(leaf: [1])],
      verdict: .refuses(.mismatch(.leaf))),
    .init(
      name: "an own entry without lists keeps the parent's pins",
      domains: [www: .domain(), "example.com": .domain(leaf: [2], subdomains: yes)],
      verdict: .refuses(.mismatch(.leaf))),
    .init(
      name: "an own list that is empty takes the parent's identities",
      domains: [
        www: .domain(leaf: []), "example.com": .domain(leaf: [1], subdomains: yes),
      ], verdict: .matches),
    .init(
      name: "a domain in two spellings unites",
      domains: ["WWW.example.com": .domain(leaf: [1]), www: .domain(leaf: [2])],
      verdict: .matches),
  ]

  static let unusable: [PinnedDomainsScenario] = [
    .init(
      name: "an empty leaf list refuses", domains: [www: .domain(leaf: [])],
      verdict: .refuses(.noLivePin)),
    .init(
      name: "an empty CA list refuses", domains: [www: .domain(ca: [])],
      verdict: .refuses(.noLivePin)),
    .init(
      name: "an empty CA list refuses beside a leaf list that matches",
      domains: [www: .domain(leaf: [1], ca: [])], verdict: .refuses(.noLivePin)),
    .init(
      name: "an empty leaf list refuses beside a CA list that matches",
      domains: [www: .domain(leaf: [], ca: [9])], verdict: .refuses(.noLivePin)),
    .init(
      name: "an empty list of the parent refuses its subdomain",
      domains: [www: .domain(leaf: [1]), "example.com": .domain(ca: [], subdomains: yes)],
      verdict: .refuses(.noLivePin)),
    .init(
      name: "a list that is a text refuses",
      domains: [
        www: .dictionary(["NSPinnedLeafIdentities": .string(SPKIPin.test(1).base64)])
      ], verdict: .refuses(.noLivePin)),
    .init(
      name: "a list that is a dictionary refuses",
      domains: [
        www: .dictionary([
          "NSPinnedLeafIdentities": .identity(.string(SPKIPin.test(1).base64))
        ])
      ], verdict: .refuses(.noLivePin)),
    .init(
      name: "a list of bare texts refuses",
      domains: [
        www: .dictionary([
          "NSPinnedLeafIdentities": .array([.string(SPKIPin.test(1).base64)])
        ])
      ], verdict: .refuses(.noLivePin)),
    .init(
      name: "a digest as data refuses",
      domains: [
        www: .dictionary([
          "NSPinnedLeafIdentities": .array([.identity(.data(SPKIPin.test(1).bytes))])
        ])
      ], verdict: .refuses(.noLivePin)),
    .init(
      name: "a digest with the prefix of another notation refuses",
      domains: [
        www: .dictionary([
          "NSPinnedLeafIdentities": .array([
            .identity(.string("sha256/" + SPKIPin.test(1).base64))
          ])
        ])
      ], verdict: .refuses(.noLivePin)),
    .init(
      name: "an identity that cannot be read leaves its neighbours",
      domains: [
        www: .dictionary([
          "NSPinnedLeafIdentities": .array([
            .identity(.string("?")), .identity(.string(SPKIPin.test(1).base64)),
          ])
        ])
      ], verdict: .matches),
    .init(
      name: "a domain whose value is no dictionary is refused", domains: [www: .array([])],
      verdict: .refuses(.noLivePin)),
  ]

  static let names: [PinnedDomainsScenario] = [
    .init(
      name: "domains are compared without case", domains: ["WWW.Example.COM": .domain(leaf: [2])],
      verdict: .refuses(.mismatch(.leaf))),
    .init(
      name: "hosts are compared without case", domains: [www: .domain(leaf: [1])],
      host: "www.EXAMPLE.com", verdict: .matches),
    .init(
      name: "one trailing dot is dropped from the host", domains: [www: .domain(leaf: [2])],
      host: "www.example.com.", verdict: .refuses(.mismatch(.leaf))),
    .init(
      name: "a trailing dot is dropped from a subdomain, too",
      domains: ["example.com": .domain(leaf: [2], subdomains: yes)], host: "www.example.com.",
      verdict: .refuses(.mismatch(.leaf))),
    .init(
      name: "a domain that ends in a dot is pinned", domains: [www + ".": .domain(leaf: [2])],
      verdict: .refuses(.mismatch(.leaf))),
    .init(
      name: "KELVIN SIGN is no k",
      domains: ["\u{212A}.example.com": .domain(leaf: [2])], host: "k.example.com",
      verdict: .leftToTheSystem),
    .init(
      name: "an address is pinned", domains: ["127.0.0.1": .domain(leaf: [2])], host: "127.0.0.1",
      verdict: .refuses(.mismatch(.leaf))),
    .init(
      name: "an address has no subdomains",
      domains: ["0.0.1": .domain(leaf: [2], subdomains: yes)], host: "127.0.0.1",
      verdict: .leftToTheSystem),
    .init(
      name: "domains have no wildcards", domains: ["*.example.com": .domain(leaf: [2])],
      verdict: .leftToTheSystem),
  ]

  static let all = roles + subdomains + united + unusable + names
}
