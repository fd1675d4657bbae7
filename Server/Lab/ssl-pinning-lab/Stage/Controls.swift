import FaultLab
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The dials without pins.
extension Dialer {
  /// Chain and host name are checked against these anchors, and nothing else: what an app does that
  /// trusts the same CAs and has no pins.
  ///
  /// - Parameter time: Unix time in seconds at which the chain must be valid.
  static func unpinned(
    _ trust: TrustMode, at time: Int64, name: String = "a client without pins"
  ) -> Dialer {
    Dialer(name: name) { url in
      do {
        let fetched = try await DocumentFetcher(trust: trust).fetch(
          DocumentRequest(
            url: RegistryURL(url.absoluteString), maximumBytes: 1 << 20, timeout: 20,
            at: TrustTime(clock: time)))
        guard case .fresh(let body, _) = fetched else { return .failed("no body") }
        return .served(String(decoding: body, as: UTF8.self))
      } catch { return .failed("\(error)") }
    }
  }

  /// An ordinary `URLSession`, for what goes out in clear text.
  ///
  /// - Parameter first: where it begins, if not at the URL that the pinned dials go to.
  static func ordinarySession(from first: URL? = nil) -> Dialer {
    Dialer(name: "an ordinary session") { url in
      let session = URLSession(configuration: .ephemeral)
      defer { session.invalidateAndCancel() }
      do {
        let body = try await session.data(from: first ?? url).0
        return .served(String(decoding: body, as: UTF8.self))
      } catch { return .failed("\(error)") }
    }
  }
}

extension Environment {
  /// The dial without pins, by the device's clock.
  var control: Dialer { .unpinned(trust, at: timeline.device) }

  /// That a client which goes by the device's clock alone would not be served.
  ///
  /// - Parameter time: the device's clock, where it is not the stage's.
  func mustNotBeValidYet(_ site: Site, at time: Int64? = nil) async throws {
    let control = Dialer.unpinned(trust, at: time ?? timeline.device)
    let answer = await control.dial(try site.url())
    try show(answer.isFailure, "the certificate is valid by the device's clock: \(answer.text)")
  }

  /// A dial that asks nothing of certificates: a proxy makes its handshakes, and asks nothing.
  var blindControl: Dialer {
    Dialer(name: "a client that checks nothing") { [self] url in
      do {
        guard let host = url.host, let port = url.port.flatMap(UInt16.init(exactly:)) else {
          return .failed("\(url) has no port")
        }
        let proxy = try InterceptingProxy.transparent(
          upstream: .loopback(port), authority: authority)
        defer { proxy.stop() }
        return await control.dial(try Site.url(host, proxy.port, url.path))
      } catch { return .failed("\(error)") }
    }
  }
}
