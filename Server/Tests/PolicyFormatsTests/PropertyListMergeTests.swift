import Foundation
import SslPinningPlatform
import SslPinningRules
import Testing

@testable import PolicyFormats

@Suite("pins in an Info.plist")
struct PropertyListMergeTests {
  static let path = ["NSAppTransportSecurity", "NSPinnedDomains"]

  static let files: [(name: String, text: String)] = [
    (
      "without the key",
      "<plist version=\"1.0\">\n<dict>\n\t<key>A</key>\n\t<string>b &lt;c</string>\n</dict>\n</plist>\n"
    ),
    ("with an empty root", "<plist version=\"1.0\"><dict/></plist>"),
    (
      "with security and no pins",
      "<plist version=\"1.0\">\n<dict>\n\t<key>NSAppTransportSecurity</key>\n\t<dict>\n\t\t<key>X</key><true/>\n\t</dict>\n\t<key>Z</key>\n\t<integer>1</integer>\n</dict>\n</plist>"
    ),
    (
      "with pins that go",
      """
      <?xml version="1.0" encoding="UTF-8"?>
      <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
      <plist version="1.0"><dict><!-- <key>NSAppTransportSecurity</key> -->
      <key>NSAppTransportSecurity</key><dict><key>NSPinnedDomains</key>
      <dict><key>old.example</key><dict><key>NSPinnedLeafIdentities</key><array/></dict></dict>
      <key>NSAllowsLocalNetworking</key><true/></dict><key>List</key><array><dict/></array></dict></plist>
      """
    ),
  ]

  @Test(
    "are put into no file in which readers would find others",
    arguments: [
      "<key>NSAppTransportSecurity</key><dict/><key>NSAppTransportSecurity</key><dict/>",
      "<key>NSAppTransportSecurity</key><dict/><key>&#78;SAppTransportSecurity</key><dict/>",
      "<key>NSAppTransportSecurity</key><dict><key>NSPinnedDomains</key><dict/><key>NSPinnedDomains</key><dict/></dict>",
    ])
  func twice(members: String) throws {
    let file = "<plist version=\"1.0\"><dict>\(members)</dict></plist>"
    let policy = try Sample.policy("new.example AB")
    #expect(throws: PolicyFormatError.self) {
      try policy.merged(into: Array(file.utf8), as: .nsPinnedDomains, at: Sample.now)
    }
  }

  @Test("are put in, and everything else stays as it was", arguments: files)
  func merge(file: (name: String, text: String)) throws {
    let before = try PropertyListReader.value(of: Array(file.text.utf8))
    let policy = try Sample.policy("new.example AB")
    let merged = try #require(
      try policy.merged(into: Array(file.text.utf8), as: .nsPinnedDomains, at: Sample.now))
    let read = try PinPolicy(reading: Array(merged.text.utf8))
    #expect(try PolicyFormatTests.demands(read, "new.example") == "AB/ all")
    #expect(try PolicyFormatTests.demands(read, "old.example") == "-")
    guard case .dictionary(var now) = try PropertyListReader.value(of: Array(merged.text.utf8)),
      case .dictionary(var old) = before
    else { throw PolicyFormatError.unknownFormat }
    for key in ["NSAppTransportSecurity"] {
      var parts: [[String: PropertyListValue]] = [now, old].map { root in
        if case .dictionary(let members)? = root[key] { members } else { [:] }
      }
      for index in parts.indices { parts[index]["NSPinnedDomains"] = nil }
      #expect(parts[0] == parts[1])
      now[key] = nil
      old[key] = nil
    }
    #expect(now == old)
    // Twice is as once.
    let again = try #require(
      try policy.merged(into: Array(merged.text.utf8), as: .nsPinnedDomains, at: Sample.now))
    #expect(again.text == merged.text)
  }

  /// TrustKit's configuration with settings of its own, a domain that only reports, and two that are exempt.
  static func trustKitFile() -> [UInt8] {
    let pins = "CD".map { "<string>\(Sample.pin($0).base64)</string>" }.joined()
    let exempt = "<dict><key>kSKExcludeSubdomainFromParentPolicy</key><true/></dict>"
    return Array(
      """
      <plist version="1.0"><dict><key>TSKConfiguration</key><dict>
      <key>TSKSwizzleNetworkDelegates</key><true/>
      <key>TSKPinnedDomains</key><dict>
      <key>e.example</key><dict><key>TSKIncludeSubdomains</key><true/><key>TSKEnforcePinning</key><false/>
      <key>TSKReportUris</key><array><string>https://reports.example/x</string></array>
      <key>TSKPublicKeyHashes</key><array>\(pins)</array></dict>
      <key>ads.e.example</key>\(exempt)<key>api.e.example</key>\(exempt)
      </dict></dict></dict></plist>
      """.utf8)
  }

  @Test("TrustKit: pins are put in, and what else a file says of a domain and of the whole stays")
  func trustKit() throws {
    func configuration(_ export: PolicyExport) throws -> [String: PropertyListValue] {
      guard case .dictionary(let root) = try PropertyListReader.value(of: Array(export.text.utf8)),
        case .dictionary(let members)? = root["TSKConfiguration"]
      else { throw PolicyFormatError.unknownFormat }
      return members
    }
    let policy = try Sample.policy("**.e.example AB", "api.e.example AB")
    let merged = try #require(
      try policy.merged(into: Self.trustKitFile(), as: .trustKit, at: Sample.now))
    #expect(merged.text.contains("<string>https://reports.example/x</string>"))
    let members = try configuration(merged)
    #expect(members["TSKSwizzleNetworkDelegates"] == .boolean(true))
    #expect(members["TSKIgnorePinningForUserDefinedTrustAnchors"] == .boolean(false))
    let read = try PinPolicy(reading: Array(merged.text.utf8))
    for host in ["e.example", "www.e.example", "api.e.example"] {
      #expect(try PolicyFormatTests.demands(read, host) == "AB/AB any")
      #expect(read.entry(for: try HostName(host))?.enforcement == .enforce)
    }
    #expect(try PolicyFormatTests.demands(read, "ads.e.example") == "-")
    let again = try #require(
      try policy.merged(into: Array(merged.text.utf8), as: .trustKit, at: Sample.now))
    #expect(again.text == merged.text)
    // TrustKit does not start without this one.
    let first = try #require(
      try policy.merged(
        into: Array("<plist version=\"1.0\"><dict/></plist>".utf8), as: .trustKit, at: Sample.now))
    #expect(try configuration(first)["TSKSwizzleNetworkDelegates"] == .boolean(false))
  }

  @Test(
    "TrustKit: hosts that a file let in and does not any more, and those that it still does, are told"
  )
  func trustKitChanges() throws {
    let policy = try Sample.policy("**.e.example AB", "api.e.example AB")
    let merged = try #require(
      try policy.merged(into: Self.trustKitFile(), as: .trustKit, at: Sample.now))
    #expect(
      Set(merged.losses.map(\.description)) == [
        "**.e.example: was not refused in the file, and will be",
        "api.e.example: was not refused in the file, and will be",
        "ads.e.example: is exempt in the file, and stays so: not pinned there",
      ])
  }

  @Test("are refused where the file is binary or not as Xcode writes it")
  func refused() throws {
    let policy = try Sample.policy("new.example AB")
    let entity = "<!DOCTYPE plist [<!ENTITY a \"b\">]><plist version=\"1.0\"><dict/></plist>"
    let cdata =
      "<plist version=\"1.0\"><dict><key>A</key><string><![CDATA[</dict>]]></string></dict></plist>"
    let binary = try PropertyListSerialization.data(
      fromPropertyList: ["A": "b"], format: .binary, options: 0)
    for bytes in [Array(entity.utf8), Array(cdata.utf8), [UInt8](binary)] {
      #expect(throws: PolicyFormatError.self) {
        try policy.merged(into: bytes, as: .nsPinnedDomains, at: Sample.now)
      }
    }
  }
}
