import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("A client of an Info.plist")
struct InfoPlistTests {
  private let site: FixedPinsSite
  private let directory: TemporaryDirectory

  init() throws {
    site = try FixedPinsSite()
    directory = try TemporaryDirectory()
  }

  /// The file of an app, by hand, with this in the dictionary of `localhost`.
  @discardableResult
  private func write(_ body: String, domain: String = "localhost", to name: String = "Info.plist")
    throws -> URL
  {
    try directory.write(
      """
      <?xml version="1.0" encoding="UTF-8"?>
      <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
      <plist version="1.0">
      <dict>
        <key>CFBundleIdentifier</key> <string>com.example.app</string>
        <key>NSAppTransportSecurity</key>
        <dict>
          <key>NSPinnedDomains</key>
          <dict>
            <key>\(domain)</key>
            <dict>
              \(body)
            </dict>
          </dict>
        </dict>
      </dict>
      </plist>
      """, to: name)
  }

  private func list(_ key: String, _ pins: [String]) -> String {
    let identities = pins.map {
      "<dict><key>SPKI-SHA256-BASE64</key> <string>\($0)</string></dict>"
    }
    return "<key>\(key)</key> <array>\(identities.joined())</array>"
  }

  private func leaf(_ pins: String...) -> String { list("NSPinnedLeafIdentities", pins) }
  private func ca(_ pins: String...) -> String { list("NSPinnedCAIdentities", pins) }

  private func end(
    _ body: String, domain: String = "localhost", host: String = "localhost",
    unlistedHosts: UnlistedHosts = NSPinnedDomains.unlistedHosts
  ) async throws -> FixedPinsSite.End {
    let url = try write(body, domain: domain)
    let pins = try FixedPins.infoPlist(
      at: url, trust: site.trust, unlistedHosts: unlistedHosts)
    return try await site.get(FixedPinsClient(pins: pins), host: host)
  }

  @Test("pins the leaf, the CAs, and both")
  func roles() async throws {
    let (key, intermediate, root) = try (site.leafPin, site.intermediatePin, site.rootPin)
    let other = SPKIPin(computed: [UInt8](repeating: 7, count: 32)).base64
    #expect(try await end(leaf(key)) == .served)
    #expect(try await end(leaf(other, key)) == .served)
    #expect(try await end(leaf(other)) == .refused(.mismatch(.leaf)))
    #expect(try await end(leaf(intermediate)) == .refused(.mismatch(.leaf)))
    #expect(try await end(ca(intermediate)) == .served)
    #expect(try await end(ca(root)) == .served)
    #expect(try await end(leaf(key) + ca(root)) == .served)
    #expect(try await end(leaf(key) + ca(other)) == .refused(.mismatch(.ca)))
    #expect(try await end(leaf(other) + ca(root)) == .refused(.mismatch(.leaf)))
  }

  @Test("never takes a CA identity for the leaf's")
  func caIsNotTheLeaf() async throws {
    let own = try site.leafPin
    #expect(try await end(ca(own)) == .refused(.mismatch(.ca)))
    #expect(site.server.counts.applicationBytesReceived == 0)
  }

  @Test(
    "refuses every connection where a list is empty or malformed",
    arguments: [
      "<key>NSPinnedLeafIdentities</key> <array/>",
      "<key>NSPinnedCAIdentities</key> <array/>",
      "<key>NSPinnedLeafIdentities</key> <string>LEAF</string>",
      "<key>NSPinnedLeafIdentities</key> <array><string>LEAF</string></array>",
      "<key>NSPinnedLeafIdentities</key> <dict/>",
      """
      <key>NSPinnedLeafIdentities</key>
      <array><dict><key>SPKI-SHA256-BASE64</key> <string>LEAF</string></dict></array>
      <key>NSPinnedCAIdentities</key> <array/>
      """,
      """
      <key>NSPinnedLeafIdentities</key>
      <array><dict><key>SPKI-SHA256-BASE64</key> <string> LEAF</string></dict></array>
      """,
    ])
  func malformed(body: String) async throws {
    let body = body.replacingOccurrences(of: "LEAF", with: try site.leafPin)
    #expect(try await end(body) == .refused(.noLivePin))
    #expect(site.server.counts.applicationBytesReceived == 0)
    let pins = try FixedPins.infoPlist(at: write(body))
    #expect(pins.problems.count == 1)
  }

  @Test("covers exactly one more label, and only for a boolean")
  func subdomains() async throws {
    let other = SPKIPin(computed: [UInt8](repeating: 7, count: 32)).base64
    let covered = "<key>NSIncludesSubdomains</key> <true/>" + leaf(other)
    #expect(try await end(covered, host: "localhost") == .refused(.mismatch(.leaf)))
    #expect(try await end(covered, host: "a.localhost") == .refused(.mismatch(.leaf)))
    #expect(try await end(covered, host: "b.a.localhost") == .served)
    for flag in ["<integer>1</integer>", "<string>YES</string>", "<false/>"] {
      let open = "<key>NSIncludesSubdomains</key> \(flag)" + leaf(other)
      #expect(try await end(open, host: "localhost") == .refused(.mismatch(.leaf)))
      #expect(try await end(open, host: "a.localhost") == .served)
    }
  }

  @Test("leaves other hosts to the system, or refuses them where the app says so")
  func unlisted() async throws {
    let body = try leaf(site.leafPin)
    #expect(try await end(body, host: "a.localhost") == .served)
    #expect(
      try await end(body, host: "a.localhost", unlistedHosts: .refuse) == .refused(.unlisted))
    #expect(try await end(body, domain: "LOCALHOST") == .served)
  }

  @Test("never loosens: a pinned server that the system does not trust is refused")
  func neverLoosens() async throws {
    let pins = try FixedPins.infoPlist(at: write(leaf(site.leafPin)))
    #expect(pins.trust == .system)
    guard case .refused(.chainRejected) = try await site.get(FixedPinsClient(pins: pins)) else {
      Issue.record("the system does not know this CA")
      return
    }
  }

  @Test("reads binary files like XML ones")
  func binary() async throws {
    let xml = try write("<key>NSIncludesSubdomains</key> <true/>" + leaf(site.leafPin))
    let value = try PropertyListSerialization.propertyList(
      from: Data(contentsOf: xml), options: [], format: nil)
    let data = try PropertyListSerialization.data(
      fromPropertyList: value, format: .binary, options: 0)
    let binary = try directory.write([UInt8](data), to: "binary.plist")
    let pins = try FixedPins.infoPlist(at: binary, trust: site.trust)
    #expect(try pins == FixedPins.infoPlist(at: xml, trust: site.trust))
    #expect(pins.entries.count == 2)
    #expect(try await site.get(FixedPinsClient(pins: pins)) == .served)
  }

  @Test("reads the Info.plist of a bundle")
  func bundle() async throws {
    try write("<key>NSIncludesSubdomains</key> <true/>" + leaf(site.leafPin))
    let bundle = try #require(Bundle(path: directory.path()))
    let pins = try FixedPins.infoPlist(of: bundle, trust: site.trust)
    #expect(pins.entries.map(\.pattern.description) == ["localhost", "*.localhost"])
    #expect(try await site.get(FixedPinsClient(pins: pins)) == .served)
  }

  @Test("is not to be had without pins")
  func nothing() throws {
    func error(_ url: URL) -> FixedPinsError? {
      #expect(throws: FixedPinsError.self) { try FixedPins.infoPlist(at: url) }
    }
    let plain = "<plist version=\"1.0\"><dict/></plist>"
    #expect(
      error(try directory.write(plain, to: "plain.plist"))
        == .noPinnedDomains(.missing(path: "NSAppTransportSecurity")))
    #expect(error(try directory.write("hello", to: "text.plist")) == .badPropertyList(.oldStyle))
    guard case .badPropertyList(.unreadableFile) = error(directory.file("none.plist")) else {
      Issue.record("a file that is not there")
      return
    }
    guard case .nothingPinned(let problems) = error(try write("")) else {
      Issue.record("no host is pinned")
      return
    }
    #expect(problems.map(\.fault) == [.noList])
    // Causes in front, and one hint of theirs behind all of them.
    let domains = "<key>*.a.example</key><dict/><key>https://b.example</key><dict/>"
    let several = try #require(
      error(
        try directory.write(
          "<plist version=\"1.0\"><dict><key>NSAppTransportSecurity</key><dict>"
            + "<key>NSPinnedDomains</key><dict>\(domains)</dict></dict></dict></plist>",
          to: "several.plist")))
    #expect("\(several)".components(separatedBy: "hint:").count == 2, "\(several)")
    #expect(several.localizedDescription.contains("https://b.example"))
    #expect(several.recoverySuggestion == "NSIncludesSubdomains")
    #expect(throws: FixedPinsError.self) {
      let empty = try TemporaryDirectory()
      return try FixedPins.infoPlist(of: #require(Bundle(path: empty.path())))
    }
  }
}
