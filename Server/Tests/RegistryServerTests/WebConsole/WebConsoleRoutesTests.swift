import Foundation
import TestSupport
import Testing

@testable import RegistryServer

@Suite("The console's files")
struct WebConsoleRoutesTests {
  private static let folder = Vectors.package
    .appending(path: "Server/Sources/RegistryServer/WebConsole/Files", directoryHint: .isDirectory)

  private static func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(
      atPath: folder.path(percentEncoded: false)
    ).sorted()
  }

  private static func path(of name: String) -> String {
    switch name {
    case "index.html": "/"
    case "console.js", "console.css": "/\(name)"
    default: "/console/\(name)"
    }
  }

  @Test("every file is served as it is, under its media type, and nothing else")
  func files() throws {
    let site = WebConsoleRoutes()
    let names = try Self.names()
    #expect(names.count > 10 && ConsoleFiles.all.count == names.count)
    for name in names {
      let bytes = [UInt8](try Data(contentsOf: Self.folder.appending(path: name)))
      let answer = try #require(site.answer(path: Self.path(of: name), ifNoneMatch: nil), "\(name)")
      #expect(answer.status == 200 && answer.body == bytes, "\(name)")
      let types = answer.headers.filter { $0.name == "Content-Type" }.map(\.value)
      let wanted =
        switch name.split(separator: ".").last {
        case "js": "text/javascript; charset=utf-8"
        case "css": "text/css; charset=utf-8"
        default: "text/html; charset=utf-8"
        }
      #expect(types == [wanted], "\(name)")
    }
    for path in ["", "/index.html", "/console", "/console/", "/console/../console.js", "/x.js"] {
      #expect(site.answer(path: path, ifNoneMatch: nil) == nil, "\(path)")
    }
  }

  @Test("a copy that is still good is not sent again; every answer carries the rules")
  func conditions() throws {
    let site = WebConsoleRoutes()
    let full = try #require(site.answer(path: "/", ifNoneMatch: nil))
    let tag = try #require(full.headers.first { $0.name == "ETag" }?.value)
    #expect(tag.hasPrefix("\"") && tag.hasSuffix("\""))
    let unchanged = try #require(site.answer(path: "/", ifNoneMatch: "\"x\", W/\(tag)"))
    #expect(unchanged.status == 304)
    #expect(site.answer(path: "/", ifNoneMatch: "\"x\"")?.status == 200)
    #expect(site.answer(path: "/console.css", ifNoneMatch: tag)?.status == 200)
    let rules = [
      "Content-Security-Policy":
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        + "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
      "Cache-Control": "no-cache",
    ]
    for answer in [full, unchanged] {
      for (name, value) in rules {
        #expect(answer.headers.filter { $0.name == name }.map(\.value) == [value])
      }
    }
  }

  @Test("nothing is inline, nothing comes from elsewhere, no text is read as markup")
  func sources() throws {
    let forbidden = [
      "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function",
      "DOMParser", "createContextualFragment", "setHTML", "javascript:", "localStorage.token",
    ]
    let names = try Self.names()
    for name in names {
      let text = try String(contentsOf: Self.folder.appending(path: name), encoding: .utf8)
      for word in forbidden { #expect(!text.contains(word), "\(name): \(word)") }
      let elsewhere = text.replacing("http://www.w3.org/2000/svg", with: "")
      #expect(!elsewhere.contains("://"), "\(name)")
      for match in text.matches(of: /from "\.\/(?:console\/)?([^"]+)"/) {
        #expect(names.contains(String(match.1)), "\(name) imports \(match.1)")
      }
    }
    let page = try String(contentsOf: Self.folder.appending(path: "index.html"), encoding: .utf8)
    #expect(!page.contains("<style") && !page.contains("style=") && !page.contains(" on"))
    #expect(page.matches(of: /<script[^>]*>/).allSatisfy { $0.0.contains("src=") })
  }

  @Test("there is no console where it is switched off")
  func switchedOff() async throws {
    for isEnabled in [true, false] {
      let directory = try makeKeyDirectory()
      let service = try RegistryService(
        configuration: try configuration(
          """
          keys: [{fqdn: www.example.com}]
          server: {listen: "127.0.0.1:0"}
          storage: {type: memory}
          tls: {dir: "\(directory.path())"}
          ui: {enabled: \(isEnabled)}
          """), clock: TestClock(), log: LogCollector().log, observer: ScriptedObserver())
      try await service.start()
      let address = try #require(service.address)
      for path in ["/", "/console.js", "/console/api.js"] {
        let answer = try await HTTPProbe.fetch("http://\(address)\(path)")
        #expect(answer.status == (isEnabled ? 200 : 404), "\(path)")
        #expect((answer.headers["content-security-policy"] != nil) == isEnabled)
      }
      await service.stop()
    }
  }
}
