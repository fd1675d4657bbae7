import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// Each in a process of its own: what is broken here ends it.
@Suite("Another libcurl in the process of a pinned session")
struct OtherLibcurlTests {
  @Test("of the GnuTLS flavour works, and the session goes on refusing")
  func gnutls() async {
    await #expect(processExitsWith: .success) { try await Self.useBoth(.gnutls, tls: "GnuTLS") }
  }

  @Test("that is a second copy works, and the session goes on refusing")
  func secondCopy() async {
    await #expect(processExitsWith: .success) {
      try await Self.useBoth(.secondCopy, tls: "OpenSSL")
    }
  }

  /// Both at once, and in turn, before and after the other library is loaded.
  private static func useBoth(_ kind: OtherLibcurl.Kind, tls: String) async throws {
    let site = try PinnedSite()
    let rogue = try LocalTLSServer(identity: site.rogueIdentity()) { _ in .text("hello") }
    let rogueURL = try site.url(port: rogue.port)
    let url = try site.url()
    let session = site.session()
    try await serve(session, url)
    let other = try await OtherLibcurl(kind, trusting: site.authority.root)
    try check(other.tlsLibrary.hasPrefix(tls), "it is \(other.tlsLibrary)")
    for _ in 0..<3 {
      try check(await other.get(url) == [200, 200], "the other is served")
      try await serve(session, url)
      try check(await site.refusal(of: rogueURL, over: session)?.rule == "leaf-pin", "refuses")
      // The control: what is refused above is a server that the CA vouches for.
      try check(await other.get(rogueURL) == [200, 200], "the other has no pins")
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask { try check(await other.get(url) == [200, 200], "the other, at once") }
        group.addTask { try await serve(site.session(), url) }
        group.addTask { try await serve(session, url) }
        group.addTask {
          let refusal = await site.refusal(of: rogueURL, over: session)
          try check(refusal?.rule == "leaf-pin", "refuses at once")
        }
      }
      try await group.waitForAll()
    }
  }

  private static func serve(_ session: URLSession, _ url: URL) async throws {
    try check(try await session.data(from: url).0 == Data("hello".utf8), "is served")
  }

  private static func check(_ holds: Bool, _ what: String) throws {
    if !holds { throw OtherLibcurl.Failure(reason: what) }
  }
}
