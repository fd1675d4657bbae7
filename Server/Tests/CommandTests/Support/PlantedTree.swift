import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport

/// Trees of sources for `doctor`: one with faults in every format, each marked by the line that has it, and one
/// without.
enum PlantedTree {
  /// 2026-11-25.
  static let now: Int64 = 1_795_600_000
  static let day: Int64 = 86_400

  /// The pin of a key by this name; `*` is a placeholder.
  static func pin(_ name: String) -> String {
    name == "*" ? CheckTests.pin("A") : SPKIPin(computed: Digest.sha256(Array(name.utf8))).base64
  }

  private static func sha(_ letter: String) -> String { "\"sha256/\(pin(letter))\"" }

  /// A file, and what is to be found in it.
  struct Planted: Sendable {
    let path: String
    let text: String
    /// `rule host`, and a text of the line that it is told at.
    let faults: [(told: String, mark: String)]

    init(_ path: String, _ text: String, _ faults: [(String, String)]) {
      (self.path, self.text) = (path, text)
      self.faults = faults.map { (told: $0.0, mark: $0.1) }
    }

    /// `rule host file:line`, as a report has them.
    var expected: [String] {
      let lines = text.components(separatedBy: "\n")
      return faults.map { told, mark in
        "\(told) \(path):\((lines.firstIndex { $0.contains(mark) } ?? -2) + 1)"
      }
    }
  }

  static let faulty: [Planted] = [
    Planted(
      "ios/App/Info.plist",
      CheckTests.apple(
        [
          CheckTests.domain("single.example", [pin("A")]),
          CheckTests.domain("twice.example", [pin("A"), pin("A"), pin("B")]),
          CheckTests.domain("both.example", [pin("A"), pin("B")], ca: [pin("A"), pin("C")]),
          CheckTests.domain("typo.example", ["not a pin", pin("A"), pin("B")]),
          CheckTests.domain("*.wild.example", [pin("A"), pin("B")]),
          CheckTests.domain("drift.example", [pin("A"), pin("B")]),
          CheckTests.domain(
            "co.uk", [pin("A"), pin("B")], "<key>NSIncludesSubdomains</key><true/>"),
        ].joined(separator: "\n")
      ).replacingOccurrences(
        of: "</dict></dict></dict></plist>",
        with: "</dict>\n<key>NSAllowsArbitraryLoads</key><true/></dict></dict></plist>"),
      [
        ("no-backup-pin single.example", "single.example"),
        ("duplicate-pin twice.example", "twice.example"),
        ("same-pin-leaf-and-ca both.example", "both.example"),
        ("unreadable-entry", "single.example"), ("not-pinned", "single.example"),
        ("drift drift.example", "drift.example"),
        ("public-suffix *.co.uk", "co.uk"), ("clear-text", "NSAllowsArbitraryLoads"),
        (
          "leaf-key-reuse *.co.uk, both.example, co.uk, drift.example, single.example, twice.example, typo.example",
          "single.example"
        ),
      ]),
    Planted(
      "android/app/src/main/AndroidManifest.xml",
      """
      <manifest><application android:networkSecurityConfig="@xml/network_security_config"/></manifest>
      """, []),
    Planted(
      "android/app/src/main/res/xml/network_security_config.xml",
      """
      <network-security-config>
      <base-config>
      <trust-anchors><certificates src="user" overridePins="true"/></trust-anchors>
      </base-config>
      <domain-config><domain>soon.example</domain>
      <pin-set expiration="2026-12-10"><pin digest="SHA-256">\(pin("A"))</pin>
      <pin digest="SHA-256">\(pin("B"))</pin></pin-set></domain-config>
      <domain-config><domain>over.example</domain>
      <pin-set expiration="2025-12-10"><pin digest="SHA-256">\(pin("A"))</pin>
      <pin digest="SHA-256">\(pin("B"))</pin></pin-set></domain-config>
      <domain-config><domain>old.example</domain><trustkit-config enforcePinning="false"/>
      <pin-set><pin digest="SHA-1">\(pin("A"))</pin><pin digest="SHA-256">\(pin("A"))</pin>
      <pin digest="SHA-256">\(pin("B"))</pin></pin-set></domain-config>
      <domain-config><domain>bad_host!.example</domain>
      <pin-set><pin digest="SHA-256">\(pin("A"))</pin></pin-set></domain-config>
      <domain-config><domain>drift.example</domain>
      <pin-set><pin digest="SHA-256">\(pin("A"))</pin><pin digest="SHA-256">\(pin("C"))</pin></pin-set>
      </domain-config>
      <domain-config cleartextTrafficPermitted="true"><domain>clear.example</domain>
      <pin-set><pin digest="SHA-256">\(pin("A"))</pin><pin digest="SHA-256">\(pin("B"))</pin></pin-set>
      </domain-config>
      <debug-overrides><trust-anchors><certificates src="user"/></trust-anchors></debug-overrides>
      </network-security-config>
      """,
      [
        ("not-pinned soon.example", "soon.example"), ("not-pinned over.example", "over.example"),
        ("not-pinned old.example", "old.example"), ("not-pinned drift.example", "drift.example"),
        ("not-pinned clear.example", "clear.example"),
        (
          "other-cas soon.example, over.example, old.example, drift.example, clear.example",
          "soon.example"
        ),
        ("pinning-ends soon.example", "soon.example"),
        ("pinning-ends over.example", "over.example"),
        ("report-only", "trustkit-config"), ("unreadable-entry old.example", "old.example"),
        ("not-pinned bad_host!.example", "bad_host!.example"),
        ("clear-text clear.example", "clear.example"),
        ("debug-builds", "debug-overrides"),
      ]),
    Planted(
      "android/app/src/main/res/xml/forgotten.xml",
      """
      <network-security-config>
      <domain-config><domain>forgotten.example</domain>
      <pin-set><pin digest="SHA-256">\(pin("A"))</pin><pin digest="SHA-256">\(pin("B"))</pin></pin-set>
      </domain-config>
      </network-security-config>
      """, [("not-pinned", "forgotten.example")]),
    Planted(
      "android/app/src/main/java/Api.kt",
      """
      package app
      // .add("comment.example", \(sha("A")))
      const val HOST = "const.example"
      val pinner = CertificatePinner.Builder()
        .add("lone.example", \(sha("A")))
        .add("again.example", \(sha("A")), \(sha("A")), \(sha("B")))
        .add("*.github.io", \(sha("A")), \(sha("B")))
        .add("*.*.bad.example", \(sha("A")))
        .add("typing.example", "sha256/AAAA", \(sha("A")), \(sha("B")))
        .add("api.wide.example", \(sha("A")), \(sha("B")))
        .add("**.wide.example", \(sha("C")), \(sha("D")))
        .add(HOST, \(sha("A")))
        .add("example.example", \(sha("A")), \(sha("*")))
        .add("$computed.example", \(sha("A")))
        .build()
      """,
      [
        ("no-backup-pin lone.example", "lone.example"),
        ("duplicate-pin again.example", "again.example"),
        ("public-suffix *.github.io", "*.github.io"),
        ("not-pinned *.*.bad.example", "*.*.bad.example"),
        ("unreadable-entry typing.example", "typing.example"),
        ("widened-host api.wide.example", "api.wide.example"),
        ("no-backup-pin const.example", "const.example"),
        ("placeholder-pin example.example", "example.example"),
      ]),
    Planted(
      "android/lib/Old.java",
      """
      class Old {
        static final String[] PINS = { \(sha("A")), "sha1/AAAAAAAAAAAAAAAAAAAAAAAAAAA=" };
        CertificatePinner pinner = new CertificatePinner.Builder().add("java.example", PINS).build();
      }
      """,
      [
        ("no-backup-pin java.example", "java.example"),
        ("unreadable-entry java.example", "java.example"),
      ]),
    Planted(
      "ios/App/Session.swift",
      """
      let manager = ServerTrustManager(
        allHostsMustBeEvaluated: false,
        evaluators: [
          "*.alamo.example": PinnedCertificatesTrustEvaluator(),
          "keys.example": .publicKeys(performDefaultValidation: false, validateHost: false),
          "names.example": PublicKeysTrustEvaluator(validateHost: false),
          "open.example": DisabledTrustEvaluator(),
          "whole.example": PublicKeysTrustEvaluator(performDefaultValidation: false),
        ])
      #if DEBUG
      let debug = DisabledTrustEvaluator()  // here alone
      #endif
      """,
      [
        ("not-pinned *.alamo.example", "*.alamo.example"), ("not-pinned", "ServerTrustManager"),
        ("whole-certificate *.alamo.example", "*.alamo.example"),
        ("pinning-disabled keys.example", "keys.example"),
        ("pinning-disabled names.example", "names.example"),
        ("pinning-disabled open.example", "open.example"),
        ("debug-builds", "here alone"),
      ]),
    Planted(
      "ios/App/Legacy.m",
      """
      AFSecurityPolicy *policy = [AFSecurityPolicy policyWithPinningMode:AFSSLPinningModeCertificate];
      policy.allowInvalidCertificates = YES;
      [policy setValidatesDomainName:NO];
      AFSecurityPolicy *none = [AFSecurityPolicy policyWithPinningMode:AFSSLPinningModeNone];
      """,
      [
        ("whole-certificate", "AFSSLPinningModeCertificate"),
        ("pinning-disabled", "allowInvalidCertificates"),
        ("pinning-disabled", "setValidatesDomainName"), ("not-pinned", "AFSSLPinningModeNone"),
      ]),
    Planted(
      "ios/App/Pins.swift",
      """
      let kit: [String: Any] = [
        kTSKPinnedDomains: [
          "kit.example": [
            kTSKEnforcePinning: false, kTSKExpirationDate: "2026-01-01",
            kTSKPublicKeyHashes: ["\(pin("A"))", "\(pin("B"))"],
          ]
        ]
      ]
      let pins = try FixedPins([
        "fixed.example": [\(sha("A"))],
        "ca.example": HostPins(ca: [\(sha("A")), \(sha("B"))]),
      ])
      let loose = \(sha("Z"))
      var config = SslPinningConfig(endpointUrl: "https://pins.example/app.json", signingKeyBase64: key)
      config.enforcement = .reportOnly
      """,
      [
        ("report-only kit.example", "\"kit.example"), ("pinning-ends kit.example", "\"kit.example"),
        ("no-backup-pin fixed.example", "fixed.example"),
        ("leaf-key-reuse fixed.example", "fixed.example"), ("pin-without-host", "let loose"),
        ("report-only", "config.enforcement"),
      ]),
    Planted(
      "shared/registry.json",
      """
      {"payload": {"keys": [
      {"domainName": "registry.example", "key": "\(pin("A"))"},
      {"domainName": "gone.example", "key": "\(pin("A"))", "expire": \(now - 9 * day)}
      ]},
      "statement": {"type": "statement", "registry": "app.json", "epoch": 1, "version": 1,
      "issued": \(now - 100 * day), "expires": \(now - 10 * day),
      "payloadDigest": "\(pin("A"))", "hosts": [], "denied": [], "removed": []}}
      """,
      [
        ("no-backup-pin registry.example", "registry.example"),
        ("no-usable-pin gone.example", "gone.example"),
        ("pin-expires gone.example", "gone.example"),
        ("list-expires", "registry.example"),
      ]),
    Planted(
      "shared/broken.json",
      """
      {"payload": {"keys": [{"domainName": "broken.example", "key": "\(pin("A"))"}]}, "signature": "
      """, [("unreadable-entry", "broken.example")]),
    Planted(
      "scripts/smoke.sh",
      """
      #!/bin/sh
      # curl --pinnedpubkey 'sha256//\(pin("A"))' https://comment.example/
      curl --fail \\
        --pinnedpubkey 'sha256//\(pin("A"))' https://curl.example/
      """,
      [
        ("no-backup-pin curl.example", "curl.example"),
        ("leaf-key-reuse curl.example", "curl.example"),
      ]
    ),
  ]

  /// TrustKit's dictionary as a binary property list, which has no lines.
  static let trustKit: (path: String, expected: [String]) = (
    "ios/App/TrustKit.plist",
    [
      "no-backup-pin one.kit.example", "unreadable-entry one.kit.example",
      "report-only reports.kit.example", "pinning-ends over.kit.example", "not-pinned",
    ].map { "\($0) ios/App/TrustKit.plist:" }
  )

  /// Writes the tree with faults.
  ///
  /// - Returns: what is to be found in it: `rule host file:line`.
  static func writeFaulty(to directory: TemporaryDirectory) throws -> [String] {
    for file in faulty { try directory.write(file.text, to: file.path) }
    let both = [pin("A"), pin("B")]
    let domains: [String: [String: Any]] = [
      "one.kit.example": ["TSKPublicKeyHashes": [pin("A")]],
      "reports.kit.example": ["TSKPublicKeyHashes": both, "TSKEnforcePinning": false],
      "over.kit.example": ["TSKPublicKeyHashes": both, "TSKExpirationDate": "2026-01-01"],
    ]
    let binary = try PropertyListSerialization.data(
      fromPropertyList: ["TSKConfiguration": ["TSKPinnedDomains": domains]], format: .binary,
      options: 0)
    try directory.write([UInt8](binary), to: trustKit.path)
    // Leaves that end soon and have ended, of a CA that ends.
    let authority = try CertificateAuthority.makeRoot(
      name: "Soon", validity: Validity(notBefore: now - 90 * day, notAfter: now + 20 * day))
    func leaf(_ days: Int64) throws -> Certificate {
      try authority.issue(
        names: ["www.example"],
        validity: Validity(notBefore: now - 80 * day, notAfter: now + days * day)
      ).leaf
    }
    try directory.write(try leaf(90).der, to: "ios/App/server.cer")
    try directory.write(try leaf(-2).pem, to: "android/app/src/main/assets/ended.pem")
    try directory.write(authority.certificate.pem, to: "shared/ca.crt")
    return faulty.flatMap(\.expected) + trustKit.expected
      + ["ios/App/server.cer", "android/app/src/main/assets/ended.pem", "shared/ca.crt"].map {
        "bundled-certificate \($0):"
      }
  }

  /// Writes a tree that pins in each format, and in which nothing is wrong.
  static func writeClean(to directory: TemporaryDirectory) throws {
    let authority = try CertificateAuthority.makeRoot(
      name: "Own", validity: Validity(notBefore: now - day, notAfter: now + 3000 * day))
    let ca = [pin("A"), pin("B")]
    let files: [(String, String)] = [
      ("ios/Info.plist", CheckTests.apple(CheckTests.domain("api.example", [], ca: ca))),
      (
        "android/app/src/main/AndroidManifest.xml",
        "<manifest><application android:networkSecurityConfig=\"@xml/pins\"/></manifest>"
      ),
      (
        "android/app/src/main/res/xml/pins.xml",
        """
        <network-security-config>
        <domain-config cleartextTrafficPermitted="false"><domain>api.example</domain>
        <pin-set><pin digest="SHA-256">\(ca[0])</pin><pin digest="SHA-256">\(ca[1])</pin></pin-set>
        </domain-config></network-security-config>
        """
      ),
      (
        "android/Api.kt",
        """
        /* DisabledTrustEvaluator() /* nested */ .add("c.example", \(sha("C"))) */
        val pinner = CertificatePinner.Builder().add("api.example", \(sha("A")), \(sha("B"))).build()
        val other = CertificatePinner.Builder().add(hostOf(user), *pinsOf(user)).build()
        val part = CertificatePinner.Builder().add("part.example", \(sha("C")), PinStore.second).build()
        """
      ),
      (
        "ios/Session.swift",
        #"""
        // DisabledTrustEvaluator(), allowInvalidCertificates = true
        let text = "DisabledTrustEvaluator() \(name("sha256/"))"
        let evaluators: [String: any ServerTrustEvaluating] = ["api.example": PublicKeysTrustEvaluator()]
        let manager = ServerTrustManager(evaluators: evaluators)
        let pins = try FixedPins(["api.example": HostPins(ca: [first, second])])
        """#
      ),
      (
        "shared/app.json",
        #"{"payload": {"keys": [{"domainName": "list.example", "key": "\#(pin("C"))"},"#
          + #" {"domainName": "list.example", "key": "\#(pin("D"))"}]}, "signature": "AA=="}"#
      ),
      ("shared/ca.pem", authority.certificate.pem),
      ("server/config.json", #"{"keys": [{"fqdn": "api.example", "domainName": "api.example"}]}"#),
    ]
    for (path, text) in files { try directory.write(text, to: path) }
  }
}
