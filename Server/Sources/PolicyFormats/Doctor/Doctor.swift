import SslPinningRules

/// What pins in a tree of sources, and what is wrong with it.
public struct Diagnosis: Sendable {
  /// Every place, in the order of the files.
  public let sites: [PinSite]
  /// What is wrong, each with its place.
  public let findings: [Finding]

  /// The lists that were read, for checks that ask servers.
  public var policies: [CheckedPolicy] { sites.compactMap(\.policy) }

  /// A finding of such a check, at the place of the list that it is about.
  public func placed(_ finding: Finding) -> Finding {
    sites.first { $0.policy?.name == finding.policy }?.placed(finding) ?? finding
  }
}

/// Finds pins among sources, and says what breaks, when, and for whom.
///
/// - Lists are judged by the rules of `check`. What these cannot see is told besides: code that turns pinning off,
///   bundled certificates that end, pins that nothing uses, lists that no manifest refers to.
/// - If one app lets in servers of a host that another app refuses, their lists are told as drift, whoever ships
///   them; lists that go by leaf pins on one side and by CA pins on the other are no drift.
public struct Doctor {
  private let now: Int64
  private let within: Int64
  private let check: PolicyCheck

  /// - Parameters:
  ///   - now: Unix seconds.
  ///   - within: seconds; an end that is nearer is told.
  ///   - isPublicSuffix: whether hosts right below this name are of different people (publicsuffix.org).
  public init(at now: Int64, within: Int64, isPublicSuffix: @escaping (String) -> Bool) {
    (self.now, self.within) = (now, within)
    check = PolicyCheck(at: now, within: within, isPublicSuffix: isPublicSuffix)
  }

  /// What is there, and what is wrong with it.
  public func diagnose(
    _ files: [SourceFile], certificates: [BundledCertificate] = []
  ) -> Diagnosis {
    var sites: [PinSite] = []
    var literals: [(file: SourceFile, line: Int, pin: SPKIPin)] = []
    for file in files {
      let isCode = [.swift, .objectiveC, .kotlin, .java].contains(file.kind)
      let code = isCode ? CodeSites(file) : nil
      sites += (code?.sites ?? ConfigurationSites.sites(in: file)) + TextSites.curl(in: file)
      literals += TextSites.literals(in: file, code).map { (file, $0.line, $0.pin) }
    }
    let known = Set(sites.flatMap(\.pins))
    sites += literals.filter { !known.contains($0.pin) }.map(loose)
    sites += bundled(certificates, in: files)
    sites.sort { ($0.file, $0.line ?? 0) < ($1.file, $1.line ?? 0) }
    return Diagnosis(
      sites: sites,
      findings: sites.flatMap(findings) + drift(sites) + unused(sites, files)
        + ends(of: certificates, sites))
  }

  // MARK: - Places by themselves

  private func loose(_ file: SourceFile, _ line: Int, _ pin: SPKIPin) -> PinSite {
    PinSite(
      file, line: line, .literal, pins: [pin],
      notes: [
        Finding(
          .looseLiteral,
          "\(pin) is pinned for a host that cannot be told from here: it is not judged")
      ])
  }

  private func findings(_ site: PinSite) -> [Finding] {
    let own = site.policy.map { check.findings([$0]) + reuse($0, site) } ?? []
    return (own + placeholders(site) + site.notes).map { site.placed($0) }
  }

  /// Pins of one letter, as examples have them: a backup that is none, or a way in that nobody has.
  private func placeholders(_ site: PinSite) -> [Finding] {
    site.pins.filter { Set($0.base64.dropLast(2)).count == 1 }.map { pin in
      let rule = site.policy?.policy.rules.first { $0.entry.pins.contains { $0.spki == pin } }
      return Finding(
        .placeholder, host: rule.map { "\($0.entry.pattern)" } ?? "",
        "\(pin) is a placeholder, and no server has such a key; hint: ssl-pinning pin FILE prints the pin of a key"
      )
    }
  }

  /// Hosts that go by their leaf alone, told once for a list. A registry follows its servers.
  private func reuse(_ checked: CheckedPolicy, _ site: PinSite) -> [Finding] {
    guard site.mechanism != .registry else { return [] }
    let hosts = checked.policy.demands.filter { _, entry in
      entry.demands(.leaf) && !entry.isEither && !entry.leaf.isEmpty
    }.map(\.pattern)
    guard !hosts.isEmpty else { return [] }
    return [
      Finding(
        .keyReuse, host: hosts.map(\.description).joined(separator: ", "),
        "leaf pins alone decide: \(CertificateLifetimes.text(at: now))")
    ]
  }

  // MARK: - Places beside each other

  private func drift(_ sites: [PinSite]) -> [Finding] {
    // A script goes by what its author sees, and is mended without a release.
    let lists = sites.filter { $0.policy != nil && $0.affects != .developers }
    // Of many copies of one list each is told once for a host.
    var told: Set<[String]> = []
    return lists.indices.flatMap { index in
      lists[..<index].flatMap { first -> [Finding] in
        let other = lists[index]
        guard let one = first.policy, let two = other.policy,
          Self.overlap(one.policy, two.policy)
        else { return [] }
        return check.findings([one, two]).filter {
          $0.rule == .drift && isComparable($0.host, one.policy, two.policy)
            && told.insert([two.name, $0.host]).inserted
        }.map { other.placed($0, affecting: .everybody) }
      }
    }
  }

  private static func overlap(_ first: PinPolicy, _ second: PinPolicy) -> Bool {
    first.patterns.contains { own in
      second.patterns.contains { $0.matches(own.base) || own.matches($0.base) }
    }
  }

  /// Whether both say something of the same role.
  private func isComparable(_ subject: String, _ first: PinPolicy, _ second: PinPolicy) -> Bool {
    guard let pattern = try? HostPattern(subject),
      let one = first.entry(of: pattern, besides: first.bases),
      let other = second.entry(of: pattern, besides: second.bases)
    else { return true }
    return one.hasUnknownRoles || other.hasUnknownRoles
      || (one.demands(.leaf) && other.demands(.leaf)) || (one.demands(.ca) && other.demands(.ca))
  }

  /// Android's lists that no manifest refers to.
  private func unused(_ sites: [PinSite], _ files: [SourceFile]) -> [Finding] {
    let manifests = files.compactMap { ConfigurationSites.configurations(ofManifest: $0) }
    guard !manifests.isEmpty else { return [] }
    let used = manifests.reduce(into: Set<String>()) { $0.formUnion($1) }
    return sites.filter { $0.mechanism == .android && !$0.hosts.isEmpty }.compactMap { site in
      let name = site.file.split(separator: "/").last?.dropLast(".xml".count) ?? ""
      guard !used.contains(String(name)) else { return nil }
      return site.placed(
        Finding(
          .notPinned,
          "no AndroidManifest.xml refers to it, and Android pins nothing; hint: android:networkSecurityConfig=\"@xml/\(String(name).shown)\""
        ))
    }
  }

  // MARK: - Certificates

  private func bundled(_ certificates: [BundledCertificate], in files: [SourceFile]) -> [PinSite] {
    certificates.compactMap { certificate in
      files.first { $0.path == certificate.file }.map {
        PinSite(
          $0, line: nil, .certificate, hosts: [certificate.subject.shown], pins: [certificate.pin])
      }
    }
  }

  private func ends(of certificates: [BundledCertificate], _ sites: [PinSite]) -> [Finding] {
    let uses = Set(sites.filter { $0.affects != .developers }.compactMap(\.certificates))
    return BundledCertificateCheck(now: now, within: within, uses: uses).findings(certificates)
      .compactMap { finding in
        sites.first { $0.mechanism == .certificate && $0.file == finding.policy }?.placed(finding)
      }
  }
}
