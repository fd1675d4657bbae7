import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
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

  @Test("do not repeat the password of a proxy that cannot be used, with and without a session")
  func secretProxy() async {
    await #expect(processExitsWith: .exitCode(7)) {
      setenv("https_proxy", "http://user:s3#cret@127.0.0.1:3128", 1)
      let site = try PinnedSite()
      let url = try site.url()
      for request in [
        { try await site.transport.data(for: URLRequest(url: url)) },
        { try await site.session().data(from: url) },
      ] as [() async throws -> (Data, URLResponse)] {
        do {
          _ = try await request()
          exit(1)
        } catch {
          let told = "\(error) \(error.localizedDescription)"
          guard told.contains("the proxy of the environment cannot be used") else { exit(2) }
          guard !told.contains("s3") else { exit(3) }
        }
      }
      exit(7)
    }
  }

  /// libcurl gives those that wait one that the proxy has not opened yet.
  @Test("are not refused for a connection that a proxy is slow to open")
  func slowProxy() async {
    await #expect(processExitsWith: .exitCode(7)) {
      let site = try PinnedSite()
      let nginx = try await Nginx.start(
        Nginx.Site(site.identity, name: "localhost", directives: "location / { return 200; }"))
      let proxy = try InterceptingProxy.tunnelling()
      let relay = try SwitchableRelay(to: .loopback(proxy.port))
      relay.slow(milliseconds: 50)
      setenv("https_proxy", "http://127.0.0.1:\(relay.port)", 1)
      let url = try site.url(port: nginx.port)
      for _ in 0..<6 {
        let session = site.session()
        try await withThrowingTaskGroup(of: Void.self) { group in
          for _ in 0..<12 { group.addTask { _ = try await session.data(from: url) } }
          try await group.waitForAll()
        }
      }
      try await nginx.stop()
      exit(7)
    }
  }

  /// Each that was given such a one makes its own, beside those that the app allows: else long ones would keep the rest waiting.
  @Test("are all under way where long answers begin together behind a slow proxy")
  func longAnswersBehindSlowProxy() async {
    await #expect(processExitsWith: .exitCode(7)) {
      let site = try PinnedSite()
      let upstream = try LocalHTTPServer { _ in
        HTTPResponse(body: Array("x".utf8), delivery: .endless(pauseMilliseconds: 20))
      }
      let nginx = try await Nginx.start(
        Nginx.Site(
          site.identity, name: "localhost",
          directives:
            "location / { proxy_buffering off; proxy_pass http://127.0.0.1:\(upstream.port); }"))
      let proxy = try InterceptingProxy.tunnelling()
      let relay = try SwitchableRelay(to: .loopback(proxy.port))
      relay.slow(milliseconds: 50)
      setenv("https_proxy", "http://127.0.0.1:\(relay.port)", 1)
      let url = try site.url(port: nginx.port)
      let configuration = URLSessionConfiguration.ephemeral
      configuration.httpMaximumConnectionsPerHost = 2
      for round in 1...10 {
        let session = site.session(configuration)
        for _ in 0..<4 { session.dataTask(with: url).resume() }
        let areServed = await eventually(within: 20) { upstream.requests.count == 4 * round }
        guard areServed else { exit(1) }
        session.invalidateAndCancel()
      }
      try await nginx.stop()
      exit(7)
    }
  }

  /// A server that ends a connection after so many requests has the next ones dial, and libcurl gives out what they dial.
  @Test("are served without a session, too, while connections behind a slow proxy change")
  func changingConnections() async {
    await #expect(processExitsWith: .exitCode(7)) {
      let site = try PinnedSite()
      let nginx = try await Nginx.start(
        Nginx.Site(
          site.identity, name: "localhost",
          directives: "keepalive_requests 100; location / { return 200; }"))
      let proxy = try InterceptingProxy.tunnelling()
      let relay = try SwitchableRelay(to: .loopback(proxy.port))
      relay.slow(milliseconds: 50)
      setenv("https_proxy", "http://127.0.0.1:\(relay.port)", 1)
      let url = try site.url(port: nginx.port)
      for _ in 0..<10 {
        let areServed = await withTaskGroup(of: Bool.self) { group in
          for _ in 0..<40 {
            group.addTask { await site.transport.end(of: url) == .served(200, "") }
          }
          return await group.allSatisfy { $0 }
        }
        guard areServed else { exit(1) }
      }
      guard !site.judge.recorded.contains(where: { $0.decision == .refuse }) else { exit(2) }
      try await nginx.stop()
      exit(7)
    }
  }
}
