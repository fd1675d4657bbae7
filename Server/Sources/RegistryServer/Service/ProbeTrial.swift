import RegistryCore
import SslPinningRules

/// Probes every endpoint of a configuration once, from everywhere, as a start would, and changes nothing.
public struct ProbeTrial: Sendable {
  /// What one endpoint showed.
  public struct Finding: Sendable {
    /// The document.
    public let file: String
    /// The endpoint's id.
    public let endpoint: String
    /// The keys that it proved, with the names of their issuers.
    public let keys: [(pin: String, issuer: String)]
    /// What was seen that proves no key, or that clients would refuse, each with the vantage point; empty if all was well.
    public let troubles: [String]
    /// Whether it showed a key under none of the CAs that clients are to ask for: they would refuse every connection
    /// that shows it.
    public let lacksCA: Bool
    /// From where it proved a key: names of vantage points.
    public let provedFrom: Set<String>
  }

  /// In the order of the configuration.
  public let findings: [Finding]

  /// How many endpoints are probed at once.
  private static let width = 32

  /// Probes. Takes `tls.timeout` for as many endpoints as are probed at once, at most.
  ///
  /// - Throws: ``RegistryServiceError/anchors(_:)``.
  public init(_ configuration: ServerConfiguration) async throws(RegistryServiceError) {
    let prober: TLSEndpointProber
    do throws(AnchorsError) { prober = try TLSEndpointProber(configuration.tls) } catch {
      throw .anchors(error)
    }
    let targets = configuration.documents.flatMap { document in
      let terms = HostTerms.inEffect(among: document.endpoints)
      return document.endpoints.map {
        (file: document.file, endpoint: $0, demanded: terms[$0.id]?.demanded ?? [])
      }
    }
    findings = await withTaskGroup(of: (Int, Finding).self) { group in
      var found: [Int: Finding] = [:]
      for (index, target) in targets.enumerated() {
        if index >= Self.width, let (done, finding) = await group.next() { found[done] = finding }
        group.addTask {
          let probe = await prober.probe(target.endpoint)
          return (index, Finding(target.file, target.endpoint, probe, demanded: target.demanded))
        }
      }
      for await (done, finding) in group { found[done] = finding }
      return targets.indices.compactMap { found[$0] }
    }
  }
}

extension ProbeTrial.Finding {
  init(
    _ file: String, _ endpoint: WatchedEndpoint, _ probe: ProbeResult, demanded: Set<SPKIPin>
  ) {
    func isRefused(_ chain: SeenChain) -> Bool {
      !demanded.isEmpty && !chain.path.dropFirst().contains { demanded.contains($0.pin) }
    }
    lacksCA = probe.observations.contains { observation in
      if case .accepted(let chain) = observation.outcome { isRefused(chain) } else { false }
    }
    provedFrom = Set(probe.observations.filter(\.isAccepted).map(\.vantage))
    (self.file, self.endpoint) = (file, endpoint.id)
    keys = probe.leaves.map { ($0.pin.base64, $0.issuer) }
    troubles = probe.observations.compactMap { observation in
      let place = [observation.vantage, observation.address].filter { !$0.isEmpty }
        .joined(separator: " ")
      return switch observation.outcome {
      case .accepted(let chain) where isRefused(chain):
        "\(place): clients would refuse \(chain.leaf.pin.base64): none of the CAs in ca stands above it"
      case .accepted: nil
      case .refused(let reason, _): "\(place): not believed: \(reason)"
      case .unreachable(let reason): "\(place): \(reason)"
      }
    }
  }

  /// Whether a start would publish a key of it.
  public var isProved: Bool { !keys.isEmpty }
}
