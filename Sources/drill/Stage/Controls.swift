import Foundation
import Pinning
import PinningPlatform
import TLSTools

/// The dials without pins.
extension Dialer {
  /// Chain and host name are checked against these anchors, and nothing else: what an app does that
  /// trusts the same CAs and has no pins.
  ///
  /// - Parameter time: Unix time in seconds at which the chain must be valid.
  static func unpinned(_ trust: TrustMode, at time: Int64) -> Dialer {
    Dialer(name: "a client without pins") { url in
      do {
        let fetched = try await DocumentFetcher(trust: trust).fetch(
          DocumentRequest(
            url: RegistryURL(url.absoluteString), maximumBytes: 1 << 20, timeout: 20, at: time))
        guard case .fresh(let body, _) = fetched else { return .failed("no body") }
        return .served(String(decoding: body, as: UTF8.self))
      } catch { return .failed("\(error)") }
    }
  }
}

extension Stage {
  /// The dial without pins, by the device's clock.
  var control: Dialer { .unpinned(trust, at: timeline.device) }
}
