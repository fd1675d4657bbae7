import CanonicalJSON
import Foundation
import PolicyFormats
import TestSupport
import Testing

@Suite("doctor")
struct DoctorTests {
  /// What a line of JSON says: `rule host file:line`, the file as the tree has it.
  static func told(_ outcome: ChildProcess.Outcome, in root: String) throws -> [String] {
    try #require(try outcome.json.arrayValue).compactMap(\.objectValue).map { finding in
      func text(_ name: String) -> String { finding[name]?.stringValue ?? "" }
      let line = finding["line"]?.integerValue.map { "\($0)" } ?? ""
      let place = text("policy").replacingOccurrences(of: root, with: "") + ":" + line
      return [text("rule"), text("host"), place].filter { !$0.isEmpty }.joined(separator: " ")
    }
  }

  static func run(_ directory: TemporaryDirectory, _ flags: String...) async throws
    -> ChildProcess.Outcome
  {
    try await Tool.run(["doctor", directory.path(), "--at", "\(PlantedTree.now)"] + flags)
  }

  @Test("finds every fault of a tree at its line, and nothing else")
  func faulty() async throws {
    let directory = try TemporaryDirectory()
    let expected = try PlantedTree.writeFaulty(to: directory)
    #expect(expected.count >= 40)
    let outcome = try await Self.run(directory, "--format", "json")
    let told = try Self.told(outcome, in: directory.path())
    for fault in expected where !told.contains(fault) { Issue.record("not found: \(fault)") }
    for fault in told where !expected.contains(fault) { Issue.record("not planted: \(fault)") }
    #expect(outcome.exitCode == 1)
  }

  @Test("finds nothing in a tree that pins as it should, nor in what others have put there")
  func clean() async throws {
    let directory = try TemporaryDirectory()
    try PlantedTree.writeClean(to: directory)
    let aside = try TemporaryDirectory()
    _ = try PlantedTree.writeFaulty(to: aside)
    for folder in [
      ".git", ".build", "Pods", "node_modules", "ios/DerivedData", "ios/AppTests",
      "android/app/src/androidTest", "android/app/build",
    ] {
      try directory.write(
        "let open = DisabledTrustEvaluator()", to: "\(folder)/intermediates/A.swift")
    }
    try FileManager.default.createSymbolicLink(
      at: directory.file("ios/elsewhere"), withDestinationURL: aside.url)
    try FileManager.default.createSymbolicLink(
      at: directory.file("ios/Elsewhere.swift"),
      withDestinationURL: aside.file("ios/App/Pins.swift"))
    let outcome = try await Self.run(directory, "--format", "json", "--fail-on", "info")
    #expect(try Self.told(outcome, in: directory.path()).isEmpty, "\(outcome.stdout)")
    #expect(outcome.exitCode == 0)
    #expect(outcome.stderr.contains("passed over: ") && outcome.stderr.contains("/Pods"))
    let text = try await Self.run(directory)
    #expect(text.stdout.contains("nothing found"))
    #expect(text.stdout.contains("ios/Info.plist:"), "\(text.stdout)")
    // Of a folder that somebody names, all is read.
    let named = try await Tool.run("doctor", directory.path("Pods"))
    #expect(named.stdout.contains("[pinning-disabled]") && named.exitCode == 1)
  }

  @Test("says whom it hits, and points at the line in each form of report")
  func reports() async throws {
    let directory = try TemporaryDirectory()
    _ = try PlantedTree.writeFaulty(to: directory)
    let text = try await Self.run(directory).stdout
    let parts = text.components(separatedBy: "\n\n")
    for (title, fault) in [
      ("everybody who has installed the app", "drift.example: lets in servers that "),
      ("everybody who has installed the app", "ca.crt: CN=Soon ends on 2026-12-15, in 20 days"),
      ("whoever has it on iOS", "server.cer: "),
      ("whoever has it on iOS", "single.example: one pin"),
      ("whoever has it on Android", "over.example: network security config pins it no longer"),
      ("whoever has it on Android", "ended on 2026-11-23"),
      ("developers and their scripts", "curl.example: one pin"),
      ("developers and their scripts", "in debug builds alone"),
    ] {
      #expect(
        parts.contains { $0.hasPrefix(title + "\n") && $0.contains(fault) }, "\(title): \(fault)")
    }
    #expect(
      parts[0].contains("android/app/src/main/java/Api.kt:4") || parts[0].contains("Api.kt:5"))
    let file = directory.path("ios/App/Session.swift")
    let github = try await Self.run(directory, "--format", "github").stdout
    #expect(
      github.contains("::error file=\(file),line=7,title=pinning-disabled::"), "\(github)")
    let sarif = try await Self.run(directory, "--format", "sarif")
    let results = try #require(
      try sarif.json.objectValue?["runs"]?.arrayValue?.first?.objectValue?["results"]?.arrayValue)
    let places = results.compactMap {
      $0.objectValue?["locations"]?.arrayValue?.first?.objectValue?["physicalLocation"]?.objectValue
    }
    #expect(
      places.contains { place in
        place["artifactLocation"]?.objectValue?["uri"] == .string(file)
          && place["region"]?.objectValue?["startLine"]?.integerValue == 7
      })
  }

  @Test("tells of lists that stand where nobody looks, and finds a manifest's list as XML has it")
  func misplaced() async throws {
    let directory = try TemporaryDirectory()
    func domains(_ name: String, _ inner: String) -> String {
      "<key>\(name)</key><dict>\n\(inner)\n</dict>"
    }
    let both = [CheckTests.pin("A"), CheckTests.pin("B")]
    let list = domains("NSPinnedDomains", CheckTests.domain("api.example", [], ca: both))
    let kit = domains(
      "TSKPinnedDomains",
      "<key>kit.example</key><dict><key>TSKPublicKeyHashes</key><array>"
        + both.map { "<string>\($0)</string>" }.joined() + "</array></dict>")
    let security = domains(
      "NSAppTransportSecurity", "<key>NSAllowsLocalNetworking</key><true/>")
    for (folder, text) in [
      ("root", list), ("beside", security + list),
      ("exception", domains("NSAppTransportSecurity", domains("NSExceptionDomains", list))),
      ("kit", "<key>CFBundleName</key><string>a</string>" + kit),
    ] {
      try directory.write(
        "<plist version=\"1.0\"><dict>\(text)</dict></plist>", to: "\(folder)/Info.plist")
    }
    let config = """
      <network-security-config><domain-config><domain>api.example</domain><pin-set>
      <pin digest="SHA-256">\(both[0])</pin><pin digest="SHA-256">\(both[1])</pin></pin-set></domain-config>
      </network-security-config>
      """
    for name in ["used", "forgotten"] { try directory.write(config, to: "res/xml/\(name).xml") }
    try directory.write(
      """
      <manifest xmlns:android="http://schemas.android.com/apk/res/android">
      <!-- <application android:networkSecurityConfig="@xml/forgotten"/> -->
      <application android:networkSecurityConfig = '@xml/used'/></manifest>
      """, to: "AndroidManifest.xml")
    let outcome = try await Self.run(directory, "--format", "json")
    let told = try Self.told(outcome, in: directory.path()).filter { $0.hasPrefix("not-pinned") }
    #expect(
      told.sorted() == [
        "not-pinned beside/Info.plist:3", "not-pinned exception/Info.plist:3",
        "not-pinned kit/Info.plist:2", "not-pinned res/xml/forgotten.xml:1",
        "not-pinned root/Info.plist:1",
      ])
    #expect(outcome.exitCode == 1)
    // Without the name of an Info.plist, by what else is in it; a list alone is a part of one.
    for (text, code) in [
      (list, Int32(0)), ("<key>CFBundleName</key><string>a</string>" + list, 1), (kit, 0),
      ("<key>CFBundleName</key><string>a</string>" + kit, 1),
    ] {
      let path = try directory.write(
        "<plist version=\"1.0\"><dict>\(text)</dict></plist>", to: "list.plist"
      ).path(percentEncoded: false)
      let checked = try await Tool.run("check", path, "--offline")
      #expect(checked.exitCode == code, "\(checked.stdout)")
    }
  }

  @Test(
    "tells of an Android list without a host, which Android refuses, and nothing of one without pins"
  )
  func noDomain() async throws {
    let set = "<pin-set><pin digest=\"SHA-256\">\(CheckTests.pin("A"))</pin></pin-set>"
    for (body, told) in [
      ("<domain-config>\(set)</domain-config>", "unreadable-entry res/xml/a.xml:"),
      ("<base-config cleartextTrafficPermitted=\"false\"/>", nil),
    ] as [(String, String?)] {
      let directory = try TemporaryDirectory()
      try directory.write(
        "<network-security-config>\(body)</network-security-config>", to: "res/xml/a.xml")
      let outcome = try await Self.run(directory, "--format", "json", "--fail-on", "info")
      let found = try Self.told(outcome, in: directory.path())
      #expect(told.map { found.contains($0) } ?? found.isEmpty, "\(found)")
      #expect(outcome.exitCode == (told == nil ? 0 : 1))
    }
  }

  @Test("tells with check of an Android list that lets in what an Info.plist with its pins refuses")
  func sameKeys() async throws {
    let directory = try TemporaryDirectory()
    func pins(_ letters: String) -> [String] { letters.map { CheckTests.pin(String($0)) } }
    try directory.write(
      CheckTests.apple(CheckTests.domain("api.example", pins("AB"), ca: pins("CD"))),
      to: "Info.plist")
    // The leaf pins alone are all that Android can say of a leaf and a CA.
    for (letters, isTold) in [("ABCD", true), ("AB", false)] {
      let list = pins(letters).map { "<pin digest=\"SHA-256\">\($0)</pin>" }.joined()
      try directory.write(
        """
        <network-security-config><domain-config><domain>api.example</domain>
        <pin-set>\(list)</pin-set></domain-config></network-security-config>
        """, to: "res/xml/a.xml")
      let tree = try await Self.run(directory)
      let lists = try await Tool.run(
        "check", directory.path("Info.plist"), directory.path("res/xml/a.xml"), "--offline")
      for outcome in [tree, lists] {
        #expect(outcome.stdout.contains("[drift]") == isTold, "\(outcome.stdout)")
        #expect(outcome.stdout.contains("refuses: any under a listed CA") == isTold)
      }
    }
  }

  @Test("asks the servers that it found with --online, and nobody without")
  func online() async throws {
    let directory = try TemporaryDirectory()
    // A name that nobody can have (RFC 6761): asking fails at once.
    try directory.write(
      CheckTests.apple(
        CheckTests.domain("pins.invalid", [], ca: [CheckTests.pin("A"), CheckTests.pin("B")])),
      to: "Info.plist")
    #expect(try await Tool.run("doctor", directory.path()).exitCode == 0)
    let asked = try await Tool.run("doctor", directory.path(), "--online", "--timeout", "5")
    #expect(asked.stdout.contains("pins.invalid:443: ") && asked.stdout.contains("[unreachable]"))
    #expect(asked.exitCode == 3)
  }

  @Test("tells what it did not read, and of a path that is none")
  func unread() async throws {
    let directory = try TemporaryDirectory()
    try directory.write([UInt8](repeating: 0x20, count: (4 << 20) + 1), to: "Large.swift")
    try directory.write("no certificate", to: "a.cer")
    let outcome = try await Self.run(directory, "--format", "json", "--fail-on", "warning")
    #expect(
      Set(try Self.told(outcome, in: directory.path())) == [
        "not-searched Large.swift:", "unreadable-entry a.cer:",
      ])
    #expect(outcome.exitCode == 1)
    #expect(try await Tool.run("doctor", directory.path("none")).exitCode == 3)
    #expect(try await Tool.run("doctor").exitCode == 2)
  }

  @Test("whatever stands in a tree, it ends, and nothing moves the cursor")
  func hostile() async throws {
    let directory = try TemporaryDirectory()
    let nested = String(repeating: "[", count: 100_000)
    try directory.write("let a = \(nested)\nFixedPins(\(nested)", to: "Deep.swift")
    try directory.write("FixedPins(\"\\(\"\\(\"\\(", to: "Open.swift")
    // Closed, since others are not read.
    let cast =
      String(repeating: "[x as ", count: 50_000) + "Y" + String(repeating: "]", count: 50_000)
    try directory.write("DisabledTrustEvaluator()\nlet a = [\"\" as \(cast)]", to: "Cast.swift")
    // What is read again for each call or sign takes hours.
    for (name, text) in [
      ("Signs.swift", "#"), ("Calls.kt", "add("), ("Spaced.m", "# "),
      ("Equals.swift", "a=[b="), ("Keys.m", "@{kTSKPinnedDomains:"),
    ] {
      try directory.write(
        "CertificatePinner TrustEvaluator " + String(repeating: text, count: 50_000 / text.count),
        to: name)
    }
    try directory.write("CertificatePinner /* /* .add(\"a\", \"sha256/", to: "Comment.kt")
    try directory.write("#if DEBUG\n#else\n#endif\n#endif\nFixedPins('", to: "Conditions.m")
    try directory.write([0xFF, 0xFE] + Array("sha256/\u{1B}[2J".utf8), to: "Bytes.py")
    try directory.write(
      "let a = [kTSKPinnedDomains: [\"\u{1B}[2J\": []]]\nDisabledTrustEvaluator()",
      to: "a\u{1B}[31m\nb.swift")
    let outcome = try await Self.run(directory)
    #expect(outcome.exitCode == 1, "\(outcome.stderr)")
    #expect(!outcome.stdout.unicodeScalars.contains("\u{1B}"))
    #expect(outcome.stdout.contains("a\\u{1B}[31m\\nb.swift:2"), "\(outcome.stdout)")
  }
}
