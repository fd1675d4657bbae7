import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import Testing

/// In processes of their own: the environment is everybody's.
@Suite("Requests and proxies that the environment names")
struct FastEnvironmentTests {
  @Test("follow what is set and unset while the process runs, with and without a session")
  func setLater() async {
    await #expect(processExitsWith: .exitCode(7)) {
      for name in ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"] {
        unsetenv(name)
      }
      let site = try PinnedSite { _ in
        // Every request dials.
        HTTPResponse(body: Array("hello".utf8), closesConnection: true)
      }
      let proxy = try InterceptingProxy.tunnelling()
      let url = try site.url()
      for (step, isSet) in [false, true, true, false, true].enumerated() {
        if isSet {
          setenv("https_proxy", "http://127.0.0.1:\(proxy.port)", 1)
        } else {
          unsetenv("https_proxy")
        }
        let before = proxy.tunnels.count
        guard await site.transport.end(of: url) == .served(200, "hello") else { exit(1) }
        let between = proxy.tunnels.count
        guard (between > before) == isSet else { exit(Int32(10 + step)) }
        _ = try await site.session().data(from: url)
        guard (proxy.tunnels.count > between) == isSet else { exit(Int32(20 + step)) }
      }
      exit(7)
    }
  }
}
