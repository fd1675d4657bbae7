import Pinning
import TLSTools

/// Looks at endpoints over TLS.
///
/// - Accepted is only a leaf whose chain ends in an anchor and that carries the endpoint's name in
///   its subjectAltName: what a client without pins would talk to. The pin is then that leaf's.
/// - The name is sent and checked even where an address is dialled instead of looked up.
/// - Own anchors replace the system's; see ``AnchorsInForce``.
public struct TLSEndpointObserver: EndpointObserver {
  private let probe: TLSProbe
  private let anchors: AnchorsInForce
  private let timeout: Int64

  /// An observer with the anchors and the time-out of a configuration.
  ///
  /// - Throws: ``AnchorsError``.
  public init(_ tls: TLSConfiguration) throws(AnchorsError) {
    anchors = try AnchorsInForce(file: tls.anchors)
    timeout = tls.timeout
    do throws(ProbeError) { probe = try TLSProbe(anchors: anchors.current()) } catch {
      throw .unusable(path: tls.anchors ?? "the TLS probe", reason: "\(error)")
    }
  }

  public func look(at endpoint: WatchedEndpoint) async -> Look {
    do throws(ProbeError) {
      let addresses = endpoint.address.map {
        [Endpoint(address: $0.description, port: endpoint.port)]
      }
      let target = try ProbeTarget(
        host: endpoint.fqdn.description, port: endpoint.port, connectTo: addresses ?? [])
      return Self.judge(
        try await probe.probe(target, milliseconds: timeout, trusting: anchors.current()))
    } catch { return .unreachable(reason: "\(error)") }
  }

  private static func judge(_ result: ProbeResult) -> Look {
    guard result.isTrusted else {
      return .refused(reason: result.complaint ?? "no valid path", presented: result.leaf.pin)
    }
    guard let pin = result.leaf.pin else {
      return .refused(reason: "the certificate's encoding cannot be read", presented: nil)
    }
    return .accepted(pin)
  }
}
