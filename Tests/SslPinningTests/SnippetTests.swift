import CanonicalJSON
import Foundation
import SslPinningRules
import TestSupport
import Testing

@Suite("The README's Swift")
struct SnippetTests {
  private static let root = Vectors.package

  /// The block of Swift in the README that an app begins with.
  private static func snippet() throws -> String {
    let readme = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
    let blocks = readme.components(separatedBy: "```swift\n").dropFirst()
      .compactMap { $0.components(separatedBy: "```").first }
    return try #require(
      blocks.first { $0.contains("await SslPinningClient.initialize(config: config)") })
  }

  /// Where the objects of this build are: beside the test bundle.
  private static func products() throws -> URL {
    let bundle = try #require(CommandLine.arguments.first { $0.hasSuffix(".xctest") })
    return URL(filePath: bundle).deletingLastPathComponent()
  }

  /// What the modules of this build need of a compiler, where they were built for a sanitizer.
  private static var sanitizer: [String] {
    for name in ["thread", "address"] where dlsym(nil, "__\(name.first ?? "t")san_init") != nil {
      return ["-sanitize=\(name)"]
    }
    return []
  }

  /// Compiles Swift that stands at the top level of a file, with the modules of this build.
  private func compile(_ source: String, in directory: TemporaryDirectory) async throws -> URL {
    let products = try Self.products()
    let shims = products.appending(path: "CSslPinningShims.build/module.modulemap")
    let main = try directory.write(source, to: "main.swift")
    let program = directory.file("snippet")
    var objects: [String] = []
    for module in [
      "CanonicalJSON", "SslPinningRules", "SslPinningPlatform", "SslPinning", "CSslPinningShims",
    ] {
      let folder = products.appending(path: "\(module).build").path(percentEncoded: false)
      let sources = Self.root.appending(path: "Sources/\(module)").path(percentEncoded: false)
      // By the sources of today: objects of files that were renamed since lie there too.
      for source in FileManager.default.enumerator(atPath: sources) ?? .init() {
        guard let name = (source as? String)?.split(separator: "/").last,
          name.hasSuffix(".swift") || name.hasSuffix(".c")
        else { continue }
        objects.append("\(folder)/\(name).o")
      }
    }
    let arguments =
      ["-swift-version", "6", "-suppress-warnings"] + Self.sanitizer
      + ["-I", products.appending(path: "Modules").path(percentEncoded: false)]
      + [
        Self.root.appending(path: "Sources/CSslPinningOpenSSL/module.modulemap"),
        Self.root.appending(path: "Sources/CSslPinningCurl/module.modulemap"), shims,
      ].flatMap { ["-Xcc", "-fmodule-map-file=\($0.path(percentEncoded: false))"] }
      + ["-o", program.path(percentEncoded: false), main.path(percentEncoded: false)]
      + objects + ["-lcurl", "-lssl", "-lcrypto"]
    let compiled = try await ChildProcess.run(
      "/usr/bin/env", ["swiftc"] + arguments, seconds: 300)
    try #require(compiled.exitCode == 0, "\(compiled.stderr)")
    return program
  }

  @Test("compiles as it stands, and runs against a registry that is up, down, or somebody else's")
  func compilesAndRuns() async throws {
    let snippet = try Self.snippet()
    let directory = try TemporaryDirectory()
    _ = try await compile(snippet, in: directory)
    let registry = try TestRegistry()
    let pin = StrictBase64.encode([UInt8](repeating: 7, count: 32))
    let entry = JSONValue.object(["domainName": .string("google.com"), "key": .string(pin)])
    let key = try TestRegistry.key.get()
    // Only the placeholders are filled in.
    let filled =
      snippet
      .replacingOccurrences(
        of: "https://ssl-pinning.example.com/api/v1/google.com.json", with: registry.url
      )
      .replacingOccurrences(
        of: "<base64 of pub.pem>", with: StrictBase64.encode(Array(key.publicKeyPEM.utf8)))
    #expect(filled != snippet)
    let program = try await compile(filled, in: directory).path(percentEncoded: false)
    registry.answer(.init(body: try TestRegistry.document([entry])))
    func run(remembering memory: String) async throws -> ChildProcess.Outcome {
      let state = directory.path(memory)
      return try await ChildProcess.run(program, [], environment: ["XDG_STATE_HOME": state])
    }
    let served = try await run(remembering: "first")
    #expect(served.exitCode == 0)
    #expect(served.stdout.isEmpty)
    let other = try TestRegistry.document([entry], signedBy: TestRegistry.otherKey.get())
    registry.answer(.init(body: other))
    #expect(try await run(remembering: "second").stdout.contains("signature does not match"))
    registry.answer(.init(delivery: .hangUp))
    #expect(try await run(remembering: "third").stdout.contains("cannot be reached"))
    // What the first run stored serves the fourth.
    #expect(try await run(remembering: "first").stdout.isEmpty)
  }
}
