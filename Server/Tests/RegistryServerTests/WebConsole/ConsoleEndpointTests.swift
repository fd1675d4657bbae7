import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

extension ConsoleTests {
  @Suite("Endpoint")
  struct Endpoint {
    private static let address = "#/endpoint/example.json/www.example.com%3A443"

    private static func open(
      _ keys: String = "[{fqdn: www.example.com, file: example.json, approval: manual}]"
    ) async throws -> (ConsoleStage, ConsolePage) {
      let stage = try ConsoleStage(keys: keys)
      stage.prepare(pin(1), at: "www.example.com")
      stage.prepare(pin(2), at: "api.example.com")
      try await stage.start()
      let page = try await ConsolePage.open(
        try stage.origin, token: try stage.token(), at: address, heading: "www.example.com:443")
      return (stage, page)
    }

    @Test("stages a key from a pin, a public key and the file of a certificate request")
    func staging() async throws {
      let (stage, page) = try await Self.open()
      let key = try PrivateKey.generate(.p256)
      try await page.press("Stage a key")
      let area = "Pin, or PEM"
      try await page.fill(area, with: key.pem)
      try await page.wait(for: "This is a private key", in: "dialog .told")
      try await page.press("Stage", in: "dialog")
      try await page.wait(for: "must not leave its machine", in: "dialog .fault")
      try await page.fill(area, with: "what is this")
      try await page.wait(for: "neither a pin nor the PEM", in: "dialog .told")
      try await page.fill(area, with: key.publicKeyPEM)
      try await page.wait(for: "This is a public key.", in: "dialog .told")
      try await page.fill("Note", with: "rotation of June")
      try await page.photograph("stage")
      try await page.press("Stage", in: "dialog")
      let pinned = try SPKIPin(subjectPublicKeyInfoDER: key.publicKeyDER).base64
      try await page.wait(for: "The key \(pinned) is staged", in: "#notice")
      try await page.wait(for: "rotation of June", in: "table")
      let rows = try await page.rows(ofTable: "Keys that apps trust")
      // Keys of the same second stand in the order of their pins.
      #expect(Set(rows.map { $0[0] }) == [pin(1).base64, pinned])
      let staged = try #require(rows.first { $0[0] == pinned })
      #expect(staged[1].contains("Staged") && staged[1].contains("by alice: rotation of June"))

      // The same again is refused, and what was typed stays.
      try await page.press("Stage a key")
      try await page.fill(area, with: pinned)
      try await page.wait(for: "This is a pin.", in: "dialog .told")
      try await page.press("Stage", in: "dialog")
      try await page.wait(for: "is published already", in: "dialog .fault")

      let openssl = try OpenSSLCommand()
      let request = try await openssl.make(
        "request.pem",
        [
          "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
          "-keyout", "key.pem", "-subj", "/CN=www.example.com",
        ])
      let directory = try TemporaryDirectory()
      let file = try directory.write(request, to: "www.csr")
      try await page.browser.element("dialog input[type=file]", named: "Or choose a file")
        .type(file.path(percentEncoded: false))
      try await page.wait(for: "This is a certificate request.", in: "dialog .told")
      try await page.press("Stage", in: "dialog")
      try await page.browser.wait(until: "!document.querySelector('dialog')")
      try await page.browser.wait(
        until:
          "document.querySelectorAll('[data-key=section-published-keys] tbody tr').length === 3"
      )
      #expect(try await page.troubles(expecting: [409]) == [])
      await stage.stop()
    }

    @Test("takes a file that is dropped on the dialog, a certificate in DER too")
    func dropping() async throws {
      let (stage, page) = try await Self.open()
      let authority = try CertificateAuthority.makeRoot(name: "Root")
      let identity = try authority.issue(names: ["www.example.com"])
      let chain = try Certificate.certificates(inPEM: identity.certificateChainPEM)
      let leaf = try #require(chain.first)
      try await page.press("Stage a key")
      let bytes = leaf.der.map { "\($0)" }.joined(separator: ",")
      try await page.browser.run(
        """
        const transfer = new DataTransfer();
        transfer.items.add(new File([new Uint8Array([\(bytes)])], "leaf.cer"));
        const event = new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true });
        document.querySelector("dialog textarea").dispatchEvent(event);
        """)
      try await page.wait(for: "This is a certificate.", in: "dialog .told")
      try await page.press("Stage", in: "dialog")
      let pinned = try SPKIPin(certificateDER: leaf.der).base64
      try await page.wait(for: "The key \(pinned) is staged", in: "#notice")
      #expect(try await page.troubles() == [])
      await stage.stop()
    }

    @Test("approves a held key, and it is published")
    func approving() async throws {
      let (stage, page) = try await Self.open()
      await stage.show(pin(9), at: "www.example.com")
      try await page.go(to: "#/pending", heading: "Pending approvals")
      #expect(try await page.text("#pending-count").trimmingCharacters(in: .whitespaces) == "1")
      try await page.photograph("pending")
      try await page.follow("www.example.com:443")
      try await page.waitForHeading("www.example.com:443")
      try await page.wait(for: "a person decides about this endpoint's keys", in: "table")
      try await page.photograph("endpoint")
      try await page.press("Approve \(pin(9).base64)")
      try await page.fill("Why", with: "confirmed by telephone")
      try await page.photograph("approve")
      try await page.press("Approve", in: "dialog")
      try await page.wait(for: "The key is approved and published.", in: "#notice")
      try await page.wait(untilGone: "Keys that wait")
      let rows = try await page.rows(ofTable: "Keys that apps trust")
      #expect(Set(rows.map { $0[0] }) == [pin(1).base64, pin(9).base64])
      try await page.wait(for: "confirmed by telephone", in: "table")
      try await page.wait(untilNone: "#pending-count:not([hidden])")
      #expect(try await page.troubles() == [])
      await stage.stop()
    }

    @Test("denies the last live key only after its hosts were read and one was typed")
    func denying() async throws {
      let (stage, page) = try await Self.open(
        "[{fqdn: www.example.com, file: example.json}, {fqdn: api.example.com, file: example.json}]"
      )
      try await page.press("Deny \(pin(1).base64)")
      try await page.press("Deny", in: "dialog")
      try await page.wait(for: "Why is missing.", in: "dialog .fault")
      try await page.fill("Why", with: "the key leaked")
      try await page.press("Deny", in: "dialog")
      try await page.wait(for: "The server refused:", in: "dialog .warning")
      #expect(try await page.text("dialog .warning").contains("*.www.example.com"))
      try await page.press("Deny all the same", in: "dialog")
      try await page.wait(for: "is missing", in: "dialog .fault")
      try await page.fill("Type www.example.com", with: "api.example.com")
      try await page.press("Deny all the same", in: "dialog")
      try await page.wait(for: "Type www.example.com to confirm.", in: "dialog .fault")
      try await page.photograph("deny-forced")
      #expect(try await stage.get("denials").contains(#""denials":[]"#))
      try await page.fill("Type www.example.com", with: "www.example.com")
      try await page.press("Deny all the same", in: "dialog")
      try await page.wait(for: "The key is denied.", in: "#notice")
      try await page.go(to: "#/denied", heading: "Denied keys")
      try await page.wait(for: "the key leaked", in: "table")
      try await page.photograph("denied")
      try await page.go(to: Self.address, heading: "www.example.com:443")
      let history = "[data-key=section-history]"
      try await page.wait(for: "the key leaked", in: history)
      // A denial counts everywhere, and is told where the key was.
      try await page.go(
        to: "#/endpoint/example.json/api.example.com%3A443", heading: "api.example.com:443")
      #expect(try await page.text(history).contains("Key published"))
      #expect(try await page.text(history).contains("the key leaked") == false)
      try await page.go(to: "#/denied", heading: "Denied keys")
      try await page.press("Allow \(pin(1).base64)")
      try await page.press("Allow again", in: "dialog")
      try await page.wait(for: "No key is denied.")
      #expect(try await page.troubles(expecting: [409]) == [])
      await stage.stop()
    }

    @Test(
      "has a CA count by force alone where no server shows it, and enforces once a name was typed")
    func terms() async throws {
      let (stage, page) = try await Self.open()
      try await page.press("CAs")
      try await page.fill("CAs", with: pin(99).base64)
      try await page.fill("Why", with: "it issues ours")
      try await page.press("Change", in: "dialog")
      try await page.wait(for: "none of these CAs", in: "dialog .warning")
      try await page.fill("Type www.example.com", with: "www.example.com")
      try await page.press("Change by force", in: "dialog")
      let watched = "[data-key=section-how-it-is-watched]"
      try await page.wait(for: pin(99).base64, in: watched)
      // Enforced as well it would lock out every app, not only those that ask for pins.
      try await page.press("CAs")
      try await page.fill("CAs", with: "")
      try await page.fill("Why", with: "it does not")
      try await page.press("Change", in: "dialog")
      try await page.wait(for: "a published key alone", in: watched)
      try await page.press("Enforce (irreversible)")
      try await page.wait(for: "This is irreversible", in: "dialog")
      try await page.fill("Why", with: "no reports for a month")
      try await page.photograph("enforce")
      try await page.press("Enforce, irreversibly", in: "dialog")
      try await page.wait(for: "is missing.", in: "dialog .fault")
      try await page.fill("Type www.example.com:443 to confirm", with: "www.example.com:443")
      try await page.press("Enforce, irreversibly", in: "dialog")
      try await page.wait(for: "in every app", in: watched)
      #expect(try await page.troubles(expecting: [409]) == [])
      await stage.stop()
    }

    @Test(
      "changes of how it is watched what was changed in the dialog: what others said meanwhile stays"
    )
    func changing() async throws {
      let (stage, page) = try await Self.open("[{fqdn: www.example.com, file: example.json}]")
      let place = "documents/example.json/endpoints/www.example.com%3A443"
      let watched = "[data-key=section-how-it-is-watched]"
      try await page.press("Change")
      try await stage.patch(place, #"{"approval":"manual"}"#)
      try await page.fill("Interval", with: "30s")
      try await page.press("Change", in: "dialog")
      try await page.wait(for: "30s", in: watched)
      #expect(try await stage.get(place).contains(#""approval":"manual""#))
      try await page.wait(for: "a person decides", in: watched)

      try await page.press("Change")
      try await stage.patch(place, #"{"interval":"45s"}"#)
      try await page.browser.run("document.querySelector('dialog select').value = 'auto'")
      try await page.press("Change", in: "dialog")
      try await page.wait(for: "the rules decide", in: watched)
      #expect(try await stage.get(place).contains(#""interval":"45s""#))
      try await page.wait(for: "45s", in: watched)

      // Nothing is sent where nothing was changed.
      try await page.press("Change")
      try await page.press("Change", in: "dialog")
      try await page.wait(for: "Nothing had to change.", in: "#notice")
      #expect(try await page.troubles() == [])
      await stage.stop()
    }

    @Test("says who goes on listing a revoked key")
    func revokedBeside() async throws {
      let (stage, page) = try await Self.open(
        "[{fqdn: www.example.com, file: example.json}, {fqdn: www.example.com, port: 8443, file: example.json}]"
      )
      try await page.press("Revoke \(pin(1).base64)")
      try await page.press("Revoke", in: "dialog")
      try await page.wait(for: "The server refused:", in: "dialog .warning")
      try await page.fill("Type www.example.com", with: "www.example.com")
      try await page.press("Revoke all the same", in: "dialog")
      try await page.wait(for: "by www.example.com:8443 in example.json", in: "#notice")
      #expect(try await page.troubles(expecting: [409]) == [])
      await stage.stop()
    }

    @Test("revokes, pauses, changes, takes out and brings back")
    func administering() async throws {
      let (stage, page) = try await Self.open(
        "[{fqdn: www.example.com, file: example.json}, {fqdn: api.example.com, file: example.json}]"
      )
      try await page.press("Revoke \(pin(1).base64)")
      try await page.press("Revoke", in: "dialog")
      try await page.wait(for: "The server refused:", in: "dialog .warning")
      try await page.press("Cancel", in: "dialog")
      try await page.press("Stage a key")
      try await page.fill("Pin, or PEM", with: pin(7).base64)
      try await page.press("Stage", in: "dialog")
      try await page.wait(for: "is staged", in: "#notice")
      try await page.press("Revoke \(pin(7).base64)")
      try await page.press("Revoke", in: "dialog")
      try await page.wait(for: "The key is revoked.", in: "#notice")

      try await page.press("Pause")
      try await page.press("Pause", in: "dialog")
      try await page.wait(for: "is paused.", in: "#notice")
      try await page.press("Resume")
      try await page.press("Resume", in: "dialog")
      try await page.wait(for: "is probed again.", in: "#notice")

      try await page.press("Change")
      try await page.fill("Interval", with: "soon")
      try await page.press("Change", in: "dialog")
      try await page.wait(for: "is no duration", in: "dialog .fault")
      try await page.fill("Interval", with: "30s")
      try await page.press("Change", in: "dialog")
      try await page.wait(for: "30s", in: "[data-key=section-how-it-is-watched]")

      try await page.press("Take out")
      try await page.fill("Why", with: "switched off")
      try await page.press("Take out", in: "dialog")
      try await page.wait(for: "is missing.", in: "dialog .fault")
      try await page.fill("Type www.example.com:443 to confirm", with: "www.example.com")
      try await page.press("Take out", in: "dialog")
      try await page.wait(for: "Type www.example.com:443 to confirm.", in: "dialog .fault")
      try await page.fill("Type www.example.com:443 to confirm", with: "www.example.com:443")
      try await page.press("Take out", in: "dialog")
      try await page.waitForHeading("example.json")
      try await page.wait(for: "www.example.com:443", in: "[data-key=section-taken-out]")
      try await page.press("Bring back www.example.com:443")
      try await page.press("Bring back", in: "dialog")
      try await page.wait(untilGone: "Taken out")
      try await page.press("Add an endpoint")
      try await page.fill("Host", with: "new.example.com")
      try await page.fill("Port", with: "eight")
      try await page.press("Add", in: "dialog")
      try await page.wait(for: "The port is a number.", in: "dialog .fault")
      try await page.fill("Port", with: "8443")
      try await page.press("Add", in: "dialog")
      try await page.waitForHeading("new.example.com:8443")
      #expect(try await page.troubles(expecting: [400, 409]) == [])
      await stage.stop()
    }
  }
}
