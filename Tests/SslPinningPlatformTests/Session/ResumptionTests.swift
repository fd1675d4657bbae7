import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import Testing

@Suite("Connections that one request makes after another")
struct ResumptionTests {
  /// A request that is led on keeps its libcurl handle, and with it what that remembers of TLS.
  @Test(
    "never resume a TLS session, which would skip the verdict: a redirect", .serialized,
    arguments: ["localhost", "a.localhost"])
  func redirect(host: String) async throws {
    let port = Locked(UInt16(0))
    let site = try PinnedSite { request in
      var response =
        request.target == "/"
        ? HTTPResponse.redirect(to: "https://\(host):\(port.withLock { $0 })/there")
        : .text("arrived")
      response.closesConnection = true
      return response
    }
    port.withLock { $0 = site.server.port }
    let (body, _) = try await site.session().data(from: site.url())
    #expect(String(decoding: body, as: UTF8.self) == "arrived")
    #expect(site.server.counts.handshakesCompleted == 2)
    #expect(site.server.counts.handshakesResumed == 0)
    #expect(site.judge.recorded.count == 2)
  }
}
