import SslPinningRules

/// What failure reports of one kind amount to.
///
/// Anybody can post a report. A class says what an operator would find if the reports are true; only
/// ``interception`` needs a chain that nobody can make up.
package enum ReportClass: String, Sendable, CaseIterable {
  /// An authority issued the chain for the host, and no probe has seen its key: somebody may stand between.
  case interception
  /// A key that people denied is shown to apps.
  case deniedKey = "denied-key"
  /// A key of the endpoint that was not on the list yet when apps met it.
  case ownKey = "own-key"
  /// A key that is published or was seen at another endpoint: a name leads to the wrong server.
  case elsewhere = "listed-elsewhere"
  /// The key is on the list, and the app does not know: its list is old.
  case oldApp = "old-app"
  /// One private authority vouches for several hosts, as a proxy that opens connections does.
  case inspectingProxy = "inspecting-proxy"
  /// Several hosts show one certificate that names none of them, as a network does that wants a sign-in.
  case captivePortal = "captive-portal"
  /// Nothing of this can be told.
  case unknown
}

/// A class, and the observation that led to it, for people.
package struct ReportVerdict: Sendable, Hashable {
  package let kind: ReportClass
  package let why: String

  init(_ kind: ReportClass, _ why: String) { (self.kind, self.why) = (kind, why) }
}

/// Where a key stands for a host, as far as this server knows.
package enum KeyPlace: Sendable, Hashable {
  /// No endpoint has it, published or seen.
  case nowhere
  /// Only endpoints for other hosts have it.
  case elsewhere
  /// A probe saw it for the host; it is not published.
  case waiting
  /// It is published for the host; since when it is known, in Unix seconds.
  case listed(since: Int64)
  /// It is denied.
  case denied
}

/// What is known of reports that are alike. Times are Unix seconds.
package struct ReportFacts: Sendable, Hashable {
  /// Where the leaf's key stands now; `nil` if the reports hold neither a chain nor a pin.
  package var key: KeyPlace?
  /// Whether the key was on the list when the newest report came.
  package var wasListed = false
  /// Whether the server's anchors believe the chain for the host.
  package var isVerified = false
  /// Whether the leaf's certificate names the host; `nil` if the reports hold no certificate, or are older.
  package var namesHost: Bool?
  /// Whether the app found the chain valid, and only its key wrong.
  package var isValidToApp = false
  /// Whether the reports hold no certificate of the leaf's issuer.
  package var lacksIssuer = false
  /// Whether probes saw an issuer of the leaf's issuer's name.
  package var isIssuerKnown = false
  /// How many hosts are reported with a chain of the same issuer, self-signed ones counting as one.
  package var hostsOfIssuer = 1
  /// How many hosts are reported with the same leaf.
  package var hostsOfLeaf = 1
  /// How many endpoints are watched.
  package var endpoints = 1
  /// When the endpoints of the host were last probed with success; the oldest of several; `nil` if one was not.
  package var probed: Int64?
  /// When the first and the newest report came.
  package var first: Int64 = 0
  package var last: Int64 = 0

  package init() {}

  /// For how many seconds after a key was seen first an app need not know it.
  static let settling: Int64 = 3600
  /// How many hosts show that something stands before many of them.
  static let several = 2
}

extension ReportFacts {
  /// What the reports amount to. The first rule that applies counts:
  ///
  /// 1. Neither chain nor pin: unknown.
  /// 2. A denied key: ``ReportClass/deniedKey``.
  /// 3. A key that waits, or was not on the list when the newest report came, or was then known for less than an hour:
  ///    ``ReportClass/ownKey``.
  /// 4. Any other key on the list: ``ReportClass/oldApp``.
  /// 5. A key of other endpoints: ``ReportClass/elsewhere``.
  /// 6. A verified chain: ``ReportClass/interception`` if every endpoint of the host was probed with success since the
  ///    first report, else unknown: the next probe may see the key.
  /// 7. A leaf that does not name the host: ``ReportClass/captivePortal`` if several hosts show it.
  /// 8. A leaf that does, under an issuer that no probe saw: ``ReportClass/inspectingProxy`` if several hosts show it, but
  ///    not if the app found the chain valid, or the issuer's certificate is missing: an authority may have issued it then.
  /// 9. All else: unknown. Where one endpoint is watched, one host is several.
  package var verdict: ReportVerdict {
    switch key {
    case nil: return ReportVerdict(.unknown, "the reports hold neither a chain nor a pin")
    case .denied: return ReportVerdict(.deniedKey, "the key is denied")
    case .waiting:
      return ReportVerdict(.ownKey, "a probe saw the key, too; it is not published yet")
    case .listed(let since):
      guard wasListed else {
        return ReportVerdict(.ownKey, "the key was published after apps met it")
      }
      guard last - since >= Self.settling else {
        return ReportVerdict(.ownKey, "the key was known for less than an hour when apps met it")
      }
      return ReportVerdict(.oldApp, "the key was on the list, and the app did not know")
    case .elsewhere:
      return ReportVerdict(.elsewhere, "the key is that of another endpoint")
    case .nowhere: break
    }
    if isVerified { return verified }
    guard let namesHost else {
      return ReportVerdict(.unknown, "there is no certificate, and no probe saw the key")
    }
    return namesHost ? named : nameless
  }

  private var verified: ReportVerdict {
    guard let probed, probed > first else {
      return ReportVerdict(
        .unknown, "an authority issued the chain, and the host was not probed since")
    }
    return ReportVerdict(
      .interception, "an authority issued the chain for the host, and no probe has seen its key")
  }

  private var nameless: ReportVerdict {
    guard isSeveral(hostsOfLeaf) else {
      return ReportVerdict(
        .unknown, "a certificate for another name, at one host: a portal, or a wrong server")
    }
    return ReportVerdict(
      .captivePortal, "one certificate, for another name, is shown for \(Self.hosts(hostsOfLeaf))")
  }

  private var named: ReportVerdict {
    if isIssuerKnown {
      return ReportVerdict(
        .unknown,
        "the issuer has the name of a known one, but the chain does not lead there:"
          + " incomplete, expired or made up")
    }
    if isValidToApp {
      return ReportVerdict(
        .unknown,
        "the app found the chain valid, and this server does not: a certificate is missing here,"
          + " or the device trusts another authority")
    }
    if lacksIssuer {
      return ReportVerdict(
        .unknown, "the issuer's certificate is missing: whether it is private cannot be told")
    }
    guard isSeveral(hostsOfIssuer) else {
      return ReportVerdict(
        .unknown, "a private authority, at one host: a proxy, a test server, or made up")
    }
    return ReportVerdict(
      .inspectingProxy, "a private authority vouches for \(Self.hosts(hostsOfIssuer))")
  }

  private static func hosts(_ count: Int) -> String { count == 1 ? "1 host" : "\(count) hosts" }

  private func isSeveral(_ hosts: Int) -> Bool { hosts >= min(Self.several, max(1, endpoints)) }
}
