import Foundation
import PolicyFormats
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Asks servers for each kind of key that they may have, at each address that clients may be led to.
///
/// - An address that does not answer is passed over if another one does, and told: clients go on to the other one.
struct EndpointEyes {
  /// What one address shows to clients that take one kind of key.
  private struct Shown {
    let kind: CertificateKeyKind
    let address: Endpoint
    let key: SeenEndpoint.Key
    /// The leaf first.
    let presented: [Certificate]
    let obstacle: String?
  }

  /// What became of asking one address for one kind of key.
  private struct Answer {
    /// The address, or the server if its name could not be looked up.
    let place: String
    let outcome: Result<Shown, ProbeError>
    /// Other addresses, which were not asked.
    let leftOut: Set<Endpoint>

    var failure: ProbeError? { if case .failure(let error) = outcome { error } else { nil } }

    /// Whether nobody answered. That a machine without IPv6 has no way there says nothing of the server.
    var isSilent: Bool {
      if case .unreachable(let endpoint, _) = failure { return !endpoint.address.contains(":") }
      return failure != nil
    }
  }

  private let probes: [(kind: CertificateKeyKind, probe: TLSProbe)]
  private let judge: ChainValidator
  private let milliseconds: Int64
  private let time: Int64?
  private let within: Int64

  /// - Parameters:
  ///   - seconds: for each server.
  ///   - time: Unix seconds at which chains are judged; `nil` is now.
  ///   - within: seconds ahead in which an end is told.
  init(
    trusting anchors: ChainValidator?, seconds: Double, at time: Int64? = nil, within: Int64 = 0
  ) throws(CommandFailure) {
    do throws(CertificateError) {
      judge = if let anchors { anchors } else { try ChainValidator.system() }
    } catch { throw .couldNotFindOut("\(error)") }
    do throws(ProbeError) {
      var probes: [(CertificateKeyKind, TLSProbe)] = []
      for kind in CertificateKeyKind.allCases {
        probes.append((kind, try TLSProbe(anchors: judge, showing: kind)))
      }
      self.probes = probes
    } catch { throw .couldNotFindOut("\(error)") }
    (milliseconds, self.time, self.within) = (Int64(seconds * 1000), time, within)
  }

  func see(_ targets: [(target: ProbeTarget, next: NextIdentity?)]) async -> [SeenEndpoint] {
    await withTaskGroup(of: (Int, SeenEndpoint?).self) { group in
      for (index, (target, next)) in targets.enumerated() {
        group.addTask { (index, await see(target, next: next)) }
      }
      var seen: [(Int, SeenEndpoint)] = []
      for await (index, endpoint) in group {
        if let endpoint { seen.append((index, endpoint)) }
      }
      return seen.sorted { $0.0 < $1.0 }.map(\.1)
    }
  }

  /// - Returns: `nil` for a target that is no host.
  func see(_ target: ProbeTarget, next: NextIdentity? = nil) async -> SeenEndpoint? {
    guard let host = try? HostName(target.host) else { return nil }
    // All at once: a server that is away costs its time once.
    let answers = await withTaskGroup(of: (Int, [Answer]).self) { group in
      for index in probes.indices {
        group.addTask { (index, await addresses(of: target, host, index)) }
      }
      return await group.reduce(into: [Int: [Answer]]()) { $0[$1.0] = $1.1 }
    }
    let all = probes.indices.flatMap { answers[$0] ?? [] }
    let shown = all.compactMap { try? $0.outcome.get() }
    guard !shown.isEmpty else {
      // A server without a key of this kind refuses the handshake; one that is away refuses all.
      let failure = all.compactMap(\.failure).first
      return SeenEndpoint(
        host: host, name: "\(target)",
        keys: .failure(.init(failure.map { "\($0)" } ?? "no address")))
    }
    return SeenEndpoint(
      host: host, name: "\(target)", keys: .success(Self.distinct(shown)),
      next: next?.successor(
        of: host, behind: shown.map(\.presented), judgedBy: judge,
        at: time ?? Int64(Date().timeIntervalSince1970)),
      obstacles: Self.obstacles(shown), unseen: Self.unseen(all))
  }

  /// The addresses that showed no key of any kind, and those that were left out.
  private static func unseen(_ answers: [Answer]) -> [String] {
    let silent = Dictionary(grouping: answers, by: \.place).compactMap { place, all in
      all.allSatisfy(\.isSilent)
        ? all.first?.failure.map { "\(place) is passed over: \($0)" } : nil
    }
    let leftOut = answers.reduce(into: Set<Endpoint>()) { $0.formUnion($1.leftOut) }
    return silent.sorted() + [leftOut.passedOver].compactMap(\.self)
  }

  /// What keeps clients from an address, once for each. It must be so for each kind of key that is there: a server may
  /// go down to an older version for want of one kind alone.
  private static func obstacles(_ shown: [Shown]) -> [String] {
    Dictionary(grouping: shown) { "\($0.address)" }.compactMap { address, all in
      all.allSatisfy { $0.obstacle != nil } ? all.first?.obstacle.map { "\(address) \($0)" } : nil
    }.sorted()
  }

  /// Each key once, with its address if others show other keys of its kind.
  private static func distinct(_ shown: [Shown]) -> [SeenEndpoint.Key] {
    CertificateKeyKind.allCases.flatMap { kind -> [SeenEndpoint.Key] in
      let own = shown.filter { $0.kind == kind }
      var told: Set<SeenEndpoint.Key> = []
      let firsts = own.filter { told.insert($0.key).inserted }
      guard firsts.count > 1 else { return firsts.map(\.key) }
      return firsts.map { $0.key.at("\($0.address)") }
    }
  }

  private func addresses(
    of target: ProbeTarget, _ host: HostName, _ index: Int
  ) async -> [Answer] {
    let (kind, probe) = probes[index]
    let findings = await probe.survey(
      host, port: target.port, addresses: target.connectTo, from: [.direct],
      limits: ProbeLimits(total: milliseconds), trusting: judge, cache: VerdictCache(),
      at: [time].compactMap(\.self))
    var answers: [Answer] = []
    for finding in findings {
      let place = finding.address.map { "\($0)" } ?? "\(target)"
      if case .failure(let error) = finding.outcome {
        answers.append(
          Answer(place: place, outcome: .failure(error), leftOut: finding.leftOut))
        continue
      }
      guard let address = finding.address else { continue }
      let outcome: Result<Shown, ProbeError>
      do throws(ProbeError) {
        let server = try await probe.probe(
          ProbeTarget(host: target.host, port: target.port, connectTo: [address]),
          milliseconds: milliseconds, at: time)
        let presented = server.presented.map(\.certificate)
        let key = judge.key(
          kind.rawValue, of: presented, host: host, at: time,
          within: within, complaint: server.complaint)
        outcome = .success(
          Shown(
            kind: kind, address: address, key: key, presented: presented, obstacle: server.obstacle)
        )
      } catch { outcome = .failure(error) }
      answers.append(Answer(place: place, outcome: outcome, leftOut: finding.leftOut))
    }
    return answers
  }
}

extension Set<Endpoint> {
  /// What is to be said of addresses that a survey left out; `nil` if it asked all.
  var passedOver: String? {
    isEmpty ? nil : "\(count) of its addresses passed over: it has too many to ask them all"
  }
}

extension ChainValidator {
  /// What clients make of the certificates that a server shows.
  ///
  /// - Parameters:
  ///   - within: seconds ahead for which ends are told, and no further than the leaf's own.
  ///   - complaint: what is wrong with them, in better words than the validator's.
  func key(
    _ kind: String, of presented: [Certificate], host: HostName, at time: Int64?,
    within: Int64 = 0, complaint: String? = nil
  ) -> SeenEndpoint.Key {
    let chain = presented.map(\.der)
    let evidence = evidence(presented: chain, host: host, at: time)
    let ends = presented.first?.validity?.notAfter
    switch evidence.validation {
    case .failure(let fault):
      return SeenEndpoint.Key(
        kind: kind, path: Array(evidence.presented.prefix(1)), complaint: complaint ?? "\(fault)",
        ends: ends)
    case .success(let valid):
      return SeenEndpoint.Key(
        kind: kind, path: valid.path,
        otherPaths: paths(of: chain, host: host, at: time).filter { $0 != valid.path },
        laterPaths: within == 0
          ? []
          : paths(
            of: chain, host: host,
            // OpenSSL counts a certificate as expired at `notAfter` itself.
            at: min(
              (time ?? Int64(Date().timeIntervalSince1970)) + within, ends.map { $0 - 1 } ?? .max)),
        complaint: complaint, ends: ends,
        authorityEnd: authorityEnd(of: chain, host: host, leafEnds: ends, at: time))
    }
  }

  /// All valid paths that a client of a registry tries.
  private func paths(of chain: [[UInt8]], host: HostName, at time: Int64?) -> [[SPKIPin]] {
    // A CA that nobody has: no path satisfies it, and none is left out.
    let nobody = PinSet([Pin(SPKIPin(computed: Digest.sha256(Array("nobody's CA".utf8))))])
    guard let policy = try? PinningPolicy(entries: [PolicyEntry(.exact(host), ca: nobody)]) else {
      return []
    }
    var paths: [[SPKIPin]] = []
    _ = evaluate(presented: chain, host: host, at: time) { evidence in
      if case .success(let valid) = evidence.validation { paths.append(valid.path) }
      return policy.evaluate(evidence, host: host, at: TrustTime(clock: 0))
    }
    return paths
  }

  /// The CA that ends first, if that is before the leaf does, and no other path goes on without it.
  private func authorityEnd(
    of chain: [[UInt8]], host: HostName, leafEnds: Int64?, at time: Int64?
  ) -> SeenEndpoint.Key.AuthorityEnd? {
    let above = (examine(chain, at: time).path ?? []).dropFirst()
      .compactMap { try? Certificate(der: $0) }
      .compactMap { one in one.validity.map { (name: one.subject, time: $0.notAfter) } }
    guard let first = above.min(by: { $0.time < $1.time }), let leafEnds, first.time < leafEnds,
      validated(chain, for: host, at: first.time + 1) == nil
    else { return nil }
    return .init(name: first.name, time: first.time)
  }
}
