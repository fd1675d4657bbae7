import CanonicalJSON
import Foundation
import RegistryServer
import SslPinningRules
import TestSupport
import Testing

@Suite("What administrators change")
struct AdministrationChangeTests {
  private static let file = AdministeredService.file
  private static let endpoint = AdministeredService.endpoint

  @Test("a staged key is published at once beside the one in use, with who and why in the history")
  func stage() async throws {
    let service = try await AdministeredService.running()
    let answer = try await service.call(
      "POST", "\(Self.endpoint)/stage", #"{"pin":"\#(pin(2).base64)","note":"June"}"#)
    #expect(answer.status == 200 && answer.changes == ["key_staged"])
    #expect(answer["pin"] == .string(pin(2).base64))
    #expect(try await service.published()["www.example.com"] == [pin(1), pin(2)])
    let key = try await service.call("GET", Self.endpoint)["keys", "1"]?.objectValue
    #expect(key?["state"] == "staged" && key?["staged"]?.objectValue?["by"] == "alice")
    #expect(key?["staged"]?.objectValue?["note"] == "June")
    let history = try await service.call("GET", "/documents/\(Self.file)/history?limit=1")
    #expect(history["entries", "0", "event"] == "key_staged")
    #expect(history["entries", "0", "who"] == "alice")
    #expect(history["entries", "0", "why"] == "June")

    let again = try await service.call(
      "POST", "\(Self.endpoint)/stage", #"{"pin":"\#(pin(2).base64)"}"#)
    #expect(again.status == 409 && again["code"] == "key-exists")
    await service.stop()
  }

  @Test("a held key waits for a person: approved it is published, unknown it is not found")
  func approve() async throws {
    let service = try await AdministeredService.running()
    try await service.call("PATCH", Self.endpoint, #"{"approval":"manual"}"#)
    await service.show(pin(2))
    #expect(try await service.published()["www.example.com"] == [pin(1)])
    let pending = try await service.call("GET", "/pending")
    #expect(pending["total"] == 1)
    #expect(pending["items", "0", "candidate", "pin"] == .string(pin(2).base64))
    #expect(pending["items", "0", "candidate", "reasons", "0", "reason"] == "manual")
    let wrong = try await service.call(
      "POST", "\(Self.endpoint)/approve", #"{"pin":"\#(pin(3).base64)"}"#)
    #expect(wrong.status == 404)
    let elsewhere = try await service.call(
      "POST", "\(Self.endpoint)0/approve", #"{"pin":"\#(pin(2).base64)"}"#)
    #expect(elsewhere.status == 404)
    #expect(elsewhere.hint == "the document has www.example.com:443")
    let misread = try await service.call(
      "POST", "\(Self.endpoint)/approve",
      #"{"pin":"\#(pin(2).base64)","issuer":"\#(pin(99).base64)"}"#)
    #expect(misread.status == 409 && misread["code"] == "other-issuer")
    #expect(try await service.published()["www.example.com"] == [pin(1)])
    // Nothing is above it.
    let issuer = pin(2).base64
    let answer = try await service.call(
      "POST", "\(Self.endpoint)/approve",
      #"{"pin":"\#(pin(2).base64)","issuer":"\#(issuer)","why":"by telephone"}"#)
    #expect(answer.changes == ["key_approved"])
    #expect(try await service.published()["www.example.com"] == [pin(1), pin(2)])
    #expect(try await service.call("GET", "/pending")["total"] == 0)
    await service.stop()
  }

  @Test("the key in use goes only by force, and the refusal names the hosts")
  func revoke() async throws {
    let service = try await AdministeredService.running()
    let body = #"{"pin":"\#(pin(1).base64)","why":"replaced"}"#
    let refused = try await service.call("POST", "\(Self.endpoint)/revoke", body)
    #expect(refused.status == 409)
    #expect(refused["hosts"] == ["www.example.com", "*.www.example.com"])
    #expect(refused.hint?.contains("force") == true)
    #expect(try await service.published()["www.example.com"] == [pin(1)])

    try await service.call(
      "POST", "\(Self.endpoint)/stage", #"{"pin":"\#(pin(2).base64)"}"#)
    let forced = try await service.call(
      "POST", "\(Self.endpoint)/revoke", #"{"pin":"\#(pin(1).base64)","force":true}"#)
    #expect(forced.changes == ["key_revoked"])
    #expect(try await service.published()["www.example.com"] == [pin(2)])
    let empty = try await service.call(
      "POST", "\(Self.endpoint)/revoke", #"{"pin":"\#(pin(2).base64)","force":true}"#)
    #expect(empty.status == 409 && empty["hosts"] == nil)
    await service.stop()
  }

  @Test("who goes on listing a revoked key for its hosts is told, in other documents, too")
  func revokeBeside() async throws {
    let service = try await AdministeredService.running(
      keys:
        "[{fqdn: www.example.com}, {fqdn: www.example.com, port: 8443, file: \(Self.file)}, {fqdn: www.example.com, port: 9443, file: other.json}]"
    )
    func revoke(_ pin: SPKIPin) async throws -> [String] {
      let answer = try await service.call(
        "POST", "\(Self.endpoint)/revoke", #"{"pin":"\#(pin.base64)","force":true}"#)
      #expect(answer.changes == ["key_revoked"], "\(answer.json)")
      return answer["warnings"]?.arrayValue?.compactMap(\.stringValue) ?? []
    }
    try await service.call("POST", "\(Self.endpoint)/stage", #"{"pin":"\#(pin(2).base64)"}"#)
    #expect(try await revoke(pin(2)) == [])
    let hosts = "www.example.com, *.www.example.com"
    #expect(
      try await revoke(pin(1)) == [
        "the key is still listed for \(hosts) by www.example.com:8443 in \(Self.file); hint: revoke it there, too",
        "the key is still listed for \(hosts) by www.example.com:9443 in other.json; hint: revoke it there, too",
      ])
    await service.stop()
  }

  @Test("a denied key is refused in every document, and allowed again by its pin in the path")
  func denials() async throws {
    let service = try await AdministeredService.running(
      keys: "[{fqdn: www.example.com}, {fqdn: other.example.net}]")
    let odd = try #require(SPKIPin(digest: [UInt8](repeating: 0xff, count: 32)))
    #expect(odd.base64.contains("/"))
    let answer = try await service.call(
      "POST", "/denials", #"{"pin":"\#(odd.base64)","why":"leaked"}"#)
    #expect(answer.changes == ["key_denied", "key_denied"])
    let list = try await service.call("GET", "/denials")
    #expect(list["denials", "0", "pin"] == .string(odd.base64))
    #expect(list["denials", "0", "by"] == "alice" && list["denials", "0", "why"] == "leaked")
    #expect(
      list["denials", "0", "files"] == ["www.example.com.json", "other.example.net.json"])
    let staged = try await service.call(
      "POST", "\(Self.endpoint)/stage", #"{"pin":"\#(odd.base64)"}"#)
    #expect(staged.status == 409 && staged["code"] == "key-denied")

    let path = "/denials/" + odd.base64.replacing("/", with: "_").replacing("=", with: "")
    #expect(try await service.call("DELETE", path + "?why=a+mistake").changes.count == 2)
    #expect(try await service.call("GET", "/denials")["denials"] == .array([]))
    #expect(try await service.call("DELETE", path).status == 404)
    #expect(try await service.call("DELETE", "/denials/abc").status == 400)
    await service.stop()
  }

  @Test("a denied key is not published in a document that is configured afterwards")
  func deniedBefore() async throws {
    let keys = "{fqdn: www.example.com}"
    let service = try await AdministeredService.running(keys: "[\(keys)]")
    _ = try await service.call("POST", "/denials", #"{"pin":"\#(pin(9).base64)","why":"leaked"}"#)
    let server = service.scripted
    server.observer.show(.accepted(pin(9)), at: "other.example.net")
    try await server.reload(keys: "[\(keys), {fqdn: other.example.net}]")
    await server.service.probe("other.example.net")
    let file = "other.example.net.json"
    #expect(server.service.currentDocument(file) == nil)
    #expect(
      try await service.call("GET", "/denials")["denials", "0", "files", "1"] == .string(file))
    server.observer.show(.accepted(pin(2)), at: "other.example.net")
    await server.service.probe("other.example.net")
    #expect(try await server.pins(in: file)["other.example.net"] == [pin(2)])
    await service.stop()
  }

  @Test("a denied key is not published where its document has another name from now on")
  func deniedUnderAnotherName() async throws {
    let service = try await AdministeredService.running(keys: "[{fqdn: www.example.com}]")
    let body = #"{"pin":"\#(pin(1).base64)","why":"leaked","force":true}"#
    #expect(try await service.call("POST", "/denials", body).changes == ["key_denied"])
    try await service.scripted.reload(keys: "[{fqdn: www.example.com, file: other.json}]")
    await service.scripted.service.probe("www.example.com")
    #expect(service.scripted.service.currentDocument("other.json") == nil)
    #expect(
      try await service.call("GET", "/denials")["denials", "0", "files"] == ["other.json"])
    await service.stop()
  }

  @Test("the only key in use of any host is denied only by force")
  func denyInUse() async throws {
    let service = try await AdministeredService.running()
    let refused = try await service.call(
      "POST", "/denials", #"{"pin":"\#(pin(1).base64)","why":"leaked"}"#)
    #expect(refused.status == 409)
    #expect(refused["hosts"] == ["www.example.com", "*.www.example.com"])
    #expect(try await service.call("GET", "/denials")["denials"] == .array([]))
    let forced = try await service.call(
      "POST", "/denials", #"{"pin":"\#(pin(1).base64)","why":"leaked","force":true}"#)
    #expect(forced.changes == ["key_denied"])
    #expect(try await service.call("GET", Self.endpoint)["keys", "0", "denied"] == true)
    await service.stop()
  }

  @Test("an endpoint comes and goes, and one that was taken out comes back by being added")
  func endpoints() async throws {
    let service = try await AdministeredService.running()
    let added = try await service.call(
      "POST", "/documents/\(Self.file)/endpoints",
      #"{"fqdn":"NEW.example.com","port":8443,"address":"192.0.2.1","interval":"30s","approval":"manual","patterns":["new.example.com","**.new.example.com"]}"#
    )
    #expect(added.status == 201 && added.changes == ["endpoint_added"])
    #expect(added["id"] == "new.example.com:8443 at 192.0.2.1")
    let location = try #require(added.headers["location"])
    #expect(location.hasSuffix("/endpoints/new.example.com%3A8443%20at%20192.0.2.1"))
    let path = String(location.dropFirst(AdministeredService.prefix.count))
    let shown = try await service.call("GET", path)
    #expect(shown["source"] == "added" && shown["interval"] == "30s")
    #expect(shown["approval"] == "manual" && shown["health"] == "pending")
    #expect(shown["patterns"] == ["new.example.com", "**.new.example.com"])
    let twice = try await service.call(
      "POST", "/documents/\(Self.file)/endpoints",
      #"{"fqdn":"new.example.com","port":8443,"address":"192.0.2.1"}"#)
    #expect(twice.status == 409)

    #expect(try await service.call("DELETE", "\(path)?why=gone").changes == ["endpoint_removed"])
    #expect(try await service.call("GET", path).status == 404)
    let tombstones = try await service.call("GET", "/tombstones")
    #expect(tombstones["tombstones", "0", "id"] == "new.example.com:8443 at 192.0.2.1")
    #expect(tombstones["tombstones", "0", "why"] == "gone")
    #expect(tombstones["tombstones", "0", "configured"] == false)
    let back = try await service.call(
      "POST", "/documents/\(Self.file)/endpoints",
      #"{"fqdn":"new.example.com","port":8443,"address":"192.0.2.1"}"#)
    #expect(back.status == 201)
    #expect(try await service.call("GET", "/tombstones")["tombstones"] == .array([]))
    await service.stop()
  }

  @Test("one of the configuration comes back as a person says, and for no other hosts")
  func configuredComesBack() async throws {
    let service = try await AdministeredService.running(
      keys: "[{fqdn: www.example.com, file: all.json}, {fqdn: api.example.com, file: all.json}]")
    let path = "/documents/all.json/endpoints"
    let endpoint = "\(path)/api.example.com%3A443"
    let said = #""fqdn":"api.example.com","approval":"manual","interval":"30s""#
    #expect(
      try await service.call("DELETE", "\(endpoint)?why=gone").changes == ["endpoint_removed"])
    let fewer = try await service.call("POST", path, #"{\#(said),"patterns":["api.example.com"]}"#)
    #expect(fewer.status == 409 && fewer.error?.contains("*.api.example.com") == true)
    #expect(try await service.call("GET", endpoint).status == 404)
    let same = #""patterns":["*.api.example.com","api.example.com"]"#
    #expect(try await service.call("POST", path, "{\(said),\(same)}").status == 201)
    let shown = try await service.call("GET", endpoint)
    #expect(shown["approval"] == "manual" && shown["interval"] == "30s")
    // Without a word it is as configured again.
    #expect(
      try await service.call("DELETE", "\(endpoint)?why=gone").changes == ["endpoint_removed"])
    #expect(try await service.call("POST", path, #"{"fqdn":"api.example.com"}"#).status == 201)
    #expect(try await service.call("GET", endpoint)["approval"] == "auto")
    await service.stop()
  }

  @Test("an added endpoint is watched at once, and its key published beside the others")
  func addedIsWatched() async throws {
    let service = try await AdministeredService.running()
    service.scripted.observer.show(.accepted(pin(6)), at: "api.example.com")
    let added = try await service.call(
      "POST", "/documents/\(Self.file)/endpoints", #"{"fqdn":"api.example.com"}"#)
    #expect(added.status == 201)
    let isPublished = await eventually {
      let document = service.scripted.service.currentDocument(Self.file)
      let pins = document.flatMap {
        try? verifiedPins($0.bytes, at: service.scripted.clock.now())
      }
      return pins?["api.example.com"] == [pin(6)]
    }
    #expect(isPublished)
    #expect(try await service.published()["www.example.com"] == [pin(1)])
    let path = "/documents/\(Self.file)/endpoints/api.example.com%3A443"
    #expect(try await service.call("DELETE", path).changes == ["endpoint_removed"])
    #expect(try await service.published()["api.example.com"] == nil)
    await service.stop()
  }

  @Test("a change leaves a server ready that has probed everywhere, though a document still waits")
  func readiness() async throws {
    let service = try await AdministeredService.running(
      keys: "[{fqdn: www.example.com}, {fqdn: silent.example.org}]")
    #expect(try await service.call("GET", "/overview")["readiness", "ready"] == true)
    try await service.call("PATCH", Self.endpoint, #"{"interval":"90s"}"#)
    #expect(try await service.call("GET", "/overview")["readiness", "ready"] == true)
    await service.stop()
  }

  @Test("the last endpoint with a key stays, and a document that is not configured has none")
  func lastEndpoint() async throws {
    let service = try await AdministeredService.running()
    #expect(try await service.call("DELETE", Self.endpoint).status == 409)
    #expect(try await service.published()["www.example.com"] == [pin(1)])
    for (method, path) in [
      ("DELETE", "/documents/nothing.json/endpoints/a:443"),
      ("DELETE", "/documents/\(Self.file)/endpoints/nothing:443"),
      ("GET", "/documents/nothing.json"), ("GET", "/documents/nothing.json/history"),
      ("GET", "/documents/\(Self.file)/endpoints/nothing:443"),
    ] {
      #expect(try await service.call(method, path).status == 404, "\(method) \(path)")
    }
    let add = try await service.call(
      "POST", "/documents/nothing.json/endpoints", #"{"fqdn":"a.example"}"#)
    #expect(add.status == 404)
    await service.stop()
  }

  @Test("what a change does not name stays as it is, and one that changes nothing says so")
  func change() async throws {
    let service = try await AdministeredService.running()
    let interval = try await service.call("PATCH", Self.endpoint, #"{"interval":"90s"}"#)
    #expect(interval.changes == ["endpoint_changed"])
    let paused = try await service.call("PATCH", Self.endpoint, #"{"paused":true,"why":"tonight"}"#)
    #expect(paused.changes == ["endpoint_paused"] && paused["changes", "0", "why"] == "tonight")
    let shown = try await service.call("GET", Self.endpoint)
    #expect(shown["interval"] == "1m30s" && shown["paused"] == true)
    #expect(shown["approval"] == "auto" && shown["health"] == "paused")
    #expect(try await service.call("PATCH", Self.endpoint, #"{"paused":true}"#).changes.isEmpty)
    let resumed = try await service.call("PATCH", Self.endpoint, #"{"paused":false}"#)
    #expect(resumed.changes == ["endpoint_resumed"])
    #expect(try await service.call("GET", Self.endpoint)["interval"] == "1m30s")
    await service.stop()
  }

  @Test(
    "a body that is not quite right is refused with the member's name, and changes nothing",
    arguments: [
      ("PATCH", "", #"{"intervall":"60s"}"#, "unknown member: intervall"),
      ("PATCH", "", #"{"paused":"true"}"#, "paused is a string"),
      ("PATCH", "", #"{"paused":null}"#, "paused is null"),
      ("PATCH", "", #"{"paused":1}"#, "paused is a number"),
      ("PATCH", "", #"{"interval":60}"#, "interval is a number"),
      ("PATCH", "", #"{"interval":"60"}"#, #"interval: "60" is no duration"#),
      ("PATCH", "", #"{"interval":"999ms"}"#, "interval: 999ms is not within 1s to 24h"),
      ("PATCH", "", #"{"interval":"25h"}"#, "interval: 25h is not within 1s to 24h"),
      ("PATCH", "", #"{"approval":"Auto"}"#, #"approval is "Auto""#),
      ("PATCH", "", #"{"why":"x"}"#, "nothing to change"), ("PATCH", "", "{}", "nothing to change"),
      ("PATCH", "", "[]", "the body is a list"), ("PATCH", "", "true", "the body is a truth value"),
      ("PATCH", "", "", "the body is empty"),
      ("PATCH", "", #"{"paused":true,"paused":false}"#, "member \"paused\" stands twice"),
      ("PATCH", "", #"{"paused":true"#, "the document breaks off"),
      ("PATCH", "", #"{"paused":true}}"#, "more data after"),
      ("PATCH", "?x=1", #"{"paused":true}"#, "unknown query parameter: x"),
      ("POST", "/stage", "{}", "no key is named"),
      ("POST", "/stage", #"{"pin":"x"}"#, "pin: "),
      ("POST", "/stage", #"{"pin":"\#(pin(2).base64)","csr":"x"}"#, "pin and csr stand together"),
      ("POST", "/stage", #"{"key":"x"}"#, "key is not PEM"),
      ("POST", "/stage", #"{"pin":["x"]}"#, "pin is a list"),
      ("POST", "/approve", #"{"why":"x"}"#, "pin is missing"),
      ("POST", "/revoke", #"{"pin":"\#(pin(1).base64)","force":"yes"}"#, "force is a string"),
    ])
  func strictness(
    method: String, suffix: String, body: String, error: String
  ) async throws {
    let service = try await AdministeredService.running()
    let answer = try await service.call(method, Self.endpoint + suffix, body)
    #expect(answer.status == 400)
    #expect(answer.error?.contains(error) == true, "\(answer.json)")
    let history = try await service.call("GET", "/documents/\(Self.file)/history")
    #expect(history["entries"]?.arrayValue?.count == 1)
    await service.stop()
  }

  @Test(
    "an endpoint that cannot be one is refused",
    arguments: [
      (#"{"port":443}"#, "fqdn is missing"), (#"{"fqdn":"a b"}"#, "fqdn: "),
      (#"{"fqdn":"a.example","port":0}"#, "port is not within 1 to 65535"),
      (#"{"fqdn":"a.example","port":65536}"#, "port is not within 1 to 65535"),
      (#"{"fqdn":"a.example","port":443.5}"#, "port is a number"),
      (#"{"fqdn":"a.example","address":"b.example"}"#, "is no IP address"),
      (#"{"fqdn":"a.example","patterns":[]}"#, "patterns has 0 elements"),
      (#"{"fqdn":"a.example","patterns":["a.example",1]}"#, "patterns[1] is a number"),
      (#"{"fqdn":"a.example","patterns":["*.*.a"]}"#, "patterns: "),
      (#"{"fqdn":"a.example","patterns":["a.b","A.B"]}"#, "patterns: a.b stands twice"),
    ])
  func badEndpoint(body: String, error: String) async throws {
    let service = try await AdministeredService.running()
    let answer = try await service.call("POST", "/documents/\(Self.file)/endpoints", body)
    #expect(answer.status == 400)
    #expect(answer.error?.contains(error) == true, "\(answer.json)")
    await service.stop()
  }

  @Test("a denial without a reason is refused")
  func denialReason() async throws {
    let service = try await AdministeredService.running()
    let pin = pin(5).base64
    #expect(
      try await service.call("POST", "/denials", #"{"pin":"\#(pin)"}"#).error == "why is missing")
    #expect(
      try await service.call("POST", "/denials", #"{"pin":"\#(pin)","why":""}"#).error
        == "why is empty")
    await service.stop()
  }
}
