import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import Testing

/// The site's certificate runs from an hour ago for 90 days, its authorities' for years.
@Suite("The times that chains are held to")
struct JudgedTimeTests {
  private static let day: Int64 = 86_400
  private let now = Int64(Date().timeIntervalSince1970)

  /// Days from today. The certificate runs from an hour ago for 90 days.
  struct Times: Sendable, CustomTestStringConvertible {
    let clock: Int64
    var floor: Int64?
    let isValid: Bool
    var testDescription: String {
      "clock \(clock) days, floor \(floor.map { "\($0) days" } ?? "none")"
    }
  }

  static let table: [Times] = [
    .init(clock: -400, isValid: false),
    .init(clock: 0, isValid: true),
    .init(clock: 89, isValid: true),
    .init(clock: 91, isValid: false),
    // Either is enough: a slow or a fast clock is made good by the floor…
    .init(clock: -400, floor: 0, isValid: true),
    .init(clock: 400, floor: 0, isValid: true),
    // …and a floor far ahead, by accident or theft, by the clock.
    .init(clock: 0, floor: 61, isValid: true),
    .init(clock: 0, floor: 100, isValid: true),
    .init(clock: 0, floor: 3650, isValid: true),
    // Neither is not.
    .init(clock: -400, floor: -1, isValid: false),
    .init(clock: 400, floor: 91, isValid: false),
    .init(clock: 400, floor: -1, isValid: false),
    .init(clock: -400, floor: 400, isValid: false),
  ]

  private func time(_ times: Times) -> TrustTime {
    TrustTime(clock: now + times.clock * Self.day, floor: times.floor.map { now + $0 * Self.day })
  }

  @Test("are the judge's in a handshake, and the dates hold at one of them", arguments: table)
  func handshake(times: Times) async throws {
    let site = try PinnedSite()
    site.judge.setTime(time(times))
    let refusal = await site.refusal(of: try site.url(), over: site.session())
    #expect((refusal == nil) == times.isValid)
    if !times.isValid {
      #expect(refusal?.rule == "chain")
      #expect(await site.server.waitUntilIdle())
    }
    #expect(site.server.requests.count == (times.isValid ? 1 : 0))
  }

  @Test("excuse dates alone: no other fault is forgiven at any of them")
  func nothingElse() async throws {
    let site = try PinnedSite()
    let stranger = try CertificateAuthority.makeRoot(
      name: "Stranger", key: .generate(.p256), validity: .days(90, from: now))
    try site.server.replaceIdentity(
      try stranger.issue(
        names: PinnedSite.names, key: site.identity.key, validity: .days(90, from: now)),
      closingConnections: true)
    for floor in [now, now + 61 * Self.day] {
      site.judge.setTime(TrustTime(clock: now, floor: floor))
      let refusal = await site.refusal(of: try site.url(), over: site.session())
      guard case .chainRejected(.untrusted) = refusal?.outcome else {
        Issue.record("\(String(describing: refusal))")
        continue
      }
    }
  }

  @Test("say whether newer pins may help: only if a certificate is not valid yet at one of them")
  func mayHelp() async throws {
    let site = try PinnedSite()
    for (clock, floor, mayHelp) in [
      (-400, nil, true), (-400, -1, true), (400, -1, true), (400, 91, false), (91, nil, false),
    ] as [(Int64, Int64?, Bool)] {
      site.judge.setTime(time(Times(clock: clock, floor: floor, isValid: false)))
      let refusal = try #require(await site.refusal(of: try site.url(), over: site.session()))
      #expect(refusal.couldChangeAfterRefresh == mayHelp, "\(clock) \(String(describing: floor))")
    }
  }

  @Test("are the machine's where the judge has none")
  func systemClock() async throws {
    let site = try PinnedSite()
    #expect(await site.refusal(of: try site.url(), over: site.session()) == nil)
    let expired = try site.authority.issue(
      names: PinnedSite.names, key: site.identity.key,
      validity: Validity(notBefore: now - 2 * Self.day, notAfter: now - Self.day))
    try site.server.replaceIdentity(expired, closingConnections: true)
    #expect(await site.refusal(of: try site.url(), over: site.session())?.rule == "chain")
  }

  @Test("are the request's for a fetched document", arguments: table)
  func fetch(times: Times) async throws {
    let site = try PinnedSite()
    let error = await fetchError(site, at: time(times))
    // Whoever believes a statement is not cut off by a certificate that is newer than its clock or the floor,
    // wherever the other is.
    let isNewer = times.floor.map { min(times.clock, $0) < 0 } ?? false
    #expect((error == nil) == (times.isValid || isNewer))
    #expect(site.server.requests.count == (error == nil ? 1 : 0))
    guard let error else { return }
    if times.clock < 0 {
      #expect(error == .notYetValid(clock: now + times.clock * Self.day))
    } else {
      guard case .unreachable = error else {
        Issue.record("\(error)")
        return
      }
    }
  }

  @Test("of a fetch are the machine's where the request has none, and excuse no other fault")
  func fetchOtherwise() async throws {
    let site = try PinnedSite()
    #expect(await fetchError(site, at: nil) == nil)
    // Newer than both times, and not the CA's.
    let stranger = try CertificateAuthority.makeRoot(
      name: "Stranger", key: .generate(.p256), validity: .days(90, from: now))
    for (authority, names) in [
      (stranger, PinnedSite.names), (site.authority, ["other.example"]),
    ] {
      try site.server.replaceIdentity(
        try authority.issue(names: names, key: site.identity.key, validity: .days(90, from: now)),
        closingConnections: true)
      let early = TrustTime(clock: now - 400 * Self.day, floor: now - 2 * Self.day)
      #expect(await fetchError(site, at: early) != nil)
    }
    #expect(site.server.requests.count == 1)
  }

  /// A registry's server, in days from today. Its root has been there for years.
  struct Chain: Sendable, CustomTestStringConvertible {
    let leaf: ClosedRange<Int64>
    var issuer: ClosedRange<Int64> = -800...800
    /// The beginning of an unrelated certificate that is sent beside the chain.
    var stray: Int64?
    /// The floor is of a statement that has expired.
    let floor: Int64
    var clock: Int64 = 0
    let isReached: Bool
    var testDescription: String {
      "leaf \(leaf), issuer \(issuer), stray \(stray.map { "\($0)" } ?? "none"), "
        + "floor \(floor), clock \(clock)"
    }
  }

  @Test(
    "of a fetch are those of the newest certificate, if the leaf is newer than a time, or valid at one",
    arguments: [
      Chain(leaf: -20...70, floor: -300, clock: -400, isReached: true),
      // An issuer that was certified again after the leaf.
      Chain(leaf: -20...70, issuer: -10...800, floor: -300, clock: -400, isReached: true),
      Chain(leaf: -20...(-15), issuer: -10...800, floor: -300, clock: -400, isReached: false),
      // The same for a leaf that is older than both times.
      Chain(leaf: -60...300, issuer: -10...800, floor: -30, clock: -20, isReached: true),
      Chain(leaf: -60...(-15), issuer: -10...800, floor: -30, clock: -20, isReached: false),
      // An issuer that has ended.
      Chain(leaf: -60...300, issuer: -800...(-5), floor: -30, isReached: false),
      Chain(leaf: -60...300, issuer: -800...(-40), stray: -10, floor: -30, isReached: false),
      // A stolen one that has ended is good only for clients that were away since before it began.
      Chain(leaf: -90...(-1), floor: -100, isReached: true),
      Chain(leaf: -90...(-1), floor: -30, isReached: false),
      Chain(leaf: -90...(-1), stray: -5, floor: -100, isReached: true),
      Chain(leaf: -90...(-1), stray: -5, floor: -30, isReached: false),
    ])
  func fetchOfNewer(chain: Chain) async throws {
    let site = try PinnedSite()
    func days(_ range: ClosedRange<Int64>) -> Validity {
      Validity(
        notBefore: now + range.lowerBound * Self.day, notAfter: now + range.upperBound * Self.day)
    }
    let root = try CertificateAuthority.makeRoot(name: "Old root", validity: days(-900...900))
    let identity = try root.issueIntermediate(
      name: "Old intermediate", validity: days(chain.issuer)
    ).issue(names: PinnedSite.names, validity: days(chain.leaf))
    let stray = try chain.stray.map {
      try CertificateAuthority.makeRoot(name: "Stray", validity: days($0...100)).certificate
    }
    try site.server.replaceIdentity(
      ServerIdentity(
        certificates: [identity.leaf] + identity.intermediates + (stray.map { [$0] } ?? []),
        key: identity.key),
      closingConnections: true)
    let time = TrustTime(
      clock: now + chain.clock * Self.day, floor: now + chain.floor * Self.day,
      isFloorInForce: false)
    let error = await fetchError(site, at: time, trusting: root.certificate)
    #expect((error == nil) == chain.isReached, "\(String(describing: error))")
    #expect(site.server.requests.count == (chain.isReached ? 1 : 0))
  }

  private func fetchError(
    _ site: PinnedSite, at time: TrustTime?, trusting root: Certificate? = nil
  ) async -> FetchError? {
    do throws(FetchError) {
      let url: RegistryURL
      do { url = try RegistryURL("https://localhost:\(site.server.port)/") } catch {
        return .unreachable("\(error)")
      }
      let fetcher: DocumentFetcher
      do {
        fetcher = try DocumentFetcher(trust: .anchors([(root ?? site.authority.root).der]))
      } catch {
        return .unreachable("\(error)")
      }
      let request = DocumentRequest(url: url, maximumBytes: 100, timeout: 60, at: time)
      _ = try await fetcher.fetch(request)
      return nil
    } catch { return error }
  }
}
