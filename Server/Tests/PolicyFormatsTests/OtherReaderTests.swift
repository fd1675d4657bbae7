import CanonicalJSON
import Foundation
import SslPinningRules
import TestSupport
import Testing

@testable import PolicyFormats

/// Whether others read what is written here, and as what.
@Suite("readers of others")
struct OtherReaderTests {
  /// Two names, one with hosts below, and one with a pattern of its own.
  static func policy() throws -> PinPolicy {
    try Sample.policy("api.example.com AB", "**.example.net CD", "cdn.example.org EF")
  }

  static func text(_ format: PolicyFormat, _ policy: PinPolicy? = nil) throws -> String {
    try #require(try (policy ?? Self.policy()).written(as: format, at: Sample.now)).text
  }

  /// Standard output of a program that reads this on its standard input.
  static func told(
    _ program: String, _ arguments: [String], _ input: String
  ) async throws -> String {
    let outcome = try await ChildProcess.run(program, arguments, input: Array(input.utf8))
    #expect(outcome.exitCode == 0, "\(outcome.stderr)")
    return outcome.stdout
  }

  @Test("xmllint finds each host with its pins, and nothing to complain of")
  func android() async throws {
    let text = try Self.text(.android)
    func values(_ path: String) async throws -> [String] {
      try await Self.told("xmllint", ["--nonet", "--xpath", path, "-"], text)
        .split(separator: "\n").map(String.init)
    }
    #expect(
      try await values("//domain-config/domain/text()") == [
        "api.example.com", "cdn.example.org", "example.net",
      ])
    let config = "//domain-config[domain/@includeSubdomains='true']"
    #expect(try await values(config + "/domain/text()") == ["example.net"])
    #expect(
      try await values(config + "/pin-set/pin[@digest='SHA-256']/text()")
        == ["C", "D"].map { Sample.pin($0).base64 })
    // The control: xmllint is one that complains.
    let broken = try await ChildProcess.run(
      "xmllint", ["--noout", "-"], input: Array(text.dropLast(10).utf8))
    #expect(broken.exitCode != 0)
  }

  /// What Python's plistlib makes of a property list, as JSON.
  static func plist(_ text: String) async throws -> JSONValue {
    let script =
      "import json, plistlib, sys; print(json.dumps(plistlib.loads(sys.stdin.buffer.read())))"
    return try JSONValue(parsing: Array(try await told("python3", ["-c", script], text).utf8))
  }

  @Test("Python's plistlib reads NSPinnedDomains, alone and in an Info.plist with other things")
  func apple() async throws {
    func pins(_ letters: String) -> JSONValue {
      .array(letters.map { .object(["SPKI-SHA256-BASE64": .string(Sample.pin($0).base64)]) })
    }
    let domains: JSONValue = .object([
      "api.example.com": .object(["NSPinnedLeafIdentities": pins("AB")]),
      "cdn.example.org": .object(["NSPinnedLeafIdentities": pins("EF")]),
      "example.net": .object([
        "NSIncludesSubdomains": .bool(true), "NSPinnedLeafIdentities": pins("CD"),
      ]),
    ])
    let alone = try await Self.plist(try Self.text(.nsPinnedDomains))
    #expect(alone == .object(["NSAppTransportSecurity": .object(["NSPinnedDomains": domains])]))
    let app = """
      <plist version="1.0"><dict><key>CFBundleName</key><string>a &amp; b</string>
      <key>NSAppTransportSecurity</key><dict><key>NSAllowsLocalNetworking</key><true/></dict></dict></plist>
      """
    let merged = try #require(
      try Self.policy().merged(into: Array(app.utf8), as: .nsPinnedDomains, at: Sample.now))
    #expect(
      try await Self.plist(merged.text)
        == .object([
          "CFBundleName": .string("a & b"),
          "NSAppTransportSecurity": .object([
            "NSAllowsLocalNetworking": .bool(true), "NSPinnedDomains": domains,
          ]),
        ]))
    let lint = try await Self.told("xmllint", ["--nonet", "--noout", "-"], merged.text)
    #expect(lint.isEmpty)
  }

  @Test("TrustKit's dictionary is the same as property list and as Swift, which compiles")
  func trustKit() async throws {
    let plist = try await Self.plist(try Self.text(.trustKit))
    let net = try #require(
      plist.objectValue?["TSKPinnedDomains"]?.objectValue?["example.net"]?.objectValue)
    #expect(net["TSKIncludeSubdomains"] == .bool(true))
    #expect(
      net["TSKPublicKeyHashes"]
        == .array(["C", "D"].map { .string(Sample.pin($0).base64) }))

    let directory = try TemporaryDirectory()
    // TrustKit's constants, as its header has them.
    let names = [
      "SwizzleNetworkDelegates", "PinnedDomains", "IncludeSubdomains", "EnforcePinning",
      "PublicKeyHashes", "DisableDefaultReportUri",
    ]
    try directory.write(
      names.map { "public let kTSK\($0) = \"TSK\($0)\"\n" }.joined(), to: "TrustKit.swift")
    try directory.write(try Self.text(.trustKitSwift), to: "Configuration.swift")
    try directory.write(
      """
      import Foundation
      let untyped: [String: Any] = trustKitConfiguration
      let json = try JSONSerialization.data(withJSONObject: untyped)
      print(String(decoding: json, as: UTF8.self))
      """, to: "main.swift")
    func swiftc(_ arguments: String...) async throws {
      let outcome = try await ChildProcess.run(
        "swiftc", ["-swift-version", "6", "-warnings-as-errors"] + arguments,
        directory: directory.url, seconds: 300)
      #expect(outcome.exitCode == 0, "\(outcome.stderr)\(outcome.stdout)")
    }
    try await swiftc(
      "-parse-as-library", "-emit-module", "-emit-library", "-static", "-module-name", "TrustKit",
      "TrustKit.swift")
    try await swiftc(
      "-I", ".", "-L", ".", "-lTrustKit", "Configuration.swift", "main.swift", "-o", "print")
    let printed = try await ChildProcess.run(directory.path("print"))
    #expect(try JSONValue(parsing: Array(printed.stdout.utf8)) == plist)
  }

  static let jars = ["okhttp", "okio"].map { "/usr/share/java/\($0).jar" }
  static let hasOkHttp = (jars + ["/usr/bin/javac"]).allSatisfy {
    FileManager.default.fileExists(atPath: $0)
  }

  /// Builds a `CertificatePinner` of the lines on standard input, and prints what it demands of each host. A server
  /// without a certificate is refused if its host is pinned, and the reason lists the pins.
  static let reader = #"""
    import java.util.*;
    import java.util.regex.*;
    import javax.net.ssl.SSLPeerUnverifiedException;
    import okhttp3.CertificatePinner;

    public class Reader {
      public static void main(String[] hosts) throws Exception {
        String kotlin = new String(System.in.readAllBytes(), "UTF-8");
        CertificatePinner.Builder builder = new CertificatePinner.Builder();
        Matcher lines = Pattern.compile("\\.add\\(\"([^\"]*)\", \"([^\"]*)\"\\)").matcher(kotlin);
        while (lines.find()) builder.add(lines.group(1), lines.group(2));
        CertificatePinner pinner = builder.build();
        for (String host : hosts) {
          Set<String> pins = new TreeSet<>();
          try {
            pinner.check(host, Collections.emptyList());
          } catch (SSLPeerUnverifiedException error) {
            Matcher found = Pattern.compile("sha256/(.)").matcher(error.getMessage());
            while (found.find()) pins.add(found.group(1));
          }
          System.out.println(host + " " + (pins.isEmpty() ? "-" : String.join("", pins)));
        }
      }
    }
    """#

  @Test(
    "OkHttp 3.13 pins what we say that it does, and `**.` not at all",
    .enabled(if: hasOkHttp, "no libokhttp-java or no JDK: apt-get install default-jdk-headless")
  )
  func okHttp() async throws {
    let directory = try TemporaryDirectory()
    try directory.write(Self.reader, to: "Reader.java")
    let path = Self.jars.joined(separator: ":")
    let built = try await ChildProcess.run(
      "javac", ["-cp", path, "Reader.java"], directory: directory.url, seconds: 120)
    #expect(built.exitCode == 0, "\(built.stderr)")
    let policy = try Sample.policy(
      "api.example.com AB", "*.example.com C", "example.net D", "**.example.net EF")
    let written = try #require(policy.written(as: .okHttp, at: Sample.now))
    let hosts = [
      "api.example.com", "www.example.com", "a.b.example.com", "example.com", "example.net",
      "a.example.net",
    ]
    let told = try await ChildProcess.run(
      "java", ["-cp", "\(path):.", "Reader"] + hosts, directory: directory.url,
      input: Array(written.text.utf8), seconds: 120)
    #expect(
      told.stdout == """
        api.example.com ABC
        www.example.com C
        a.b.example.com -
        example.com -
        example.net DEF
        a.example.net -

        """, "\(told.stderr)")
    #expect(
      written.losses.map(\.host) == ["**.example.net"],
      "what this OkHttp does not pin is what we warn of")
  }
}
