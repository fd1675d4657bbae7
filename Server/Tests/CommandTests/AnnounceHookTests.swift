import Foundation
import TestSupport
import Testing

@Suite("the hook that puts renewed keys in use") struct AnnounceHookTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private var served: String { directory.path("served/site/key.pem") }

  private func put(
    _ text: String, reload: String, in folder: String = ".", timeout: Int = 1
  ) async throws -> Int32 {
    for name in ["key.pem", "chain.pem"] { try directory.write(text, to: "\(folder)/\(name)") }
    let settings = try directory.write(
      """
      served=\(directory.path("served"))
      renewed=\(directory.path("renewed"))
      reload=\(reload)
      reload_timeout=\(timeout)
      announce=(x)
      """, to: "\(folder)/announce.conf")
    let hook = Vectors.package.appending(path: "packaging/announce-renewed")
    return try await ChildProcess.run(
      "bash",
      [
        hook.path(percentEncoded: false), "put", "site", directory.path("\(folder)/key.pem"),
        directory.path("\(folder)/chain.pem"),
      ], environment: ["ANNOUNCE_RENEWED_CONF": settings.path(percentEncoded: false)]
    ).exitCode
  }

  @Test("has its link go back to what was served if the web server cannot load the new chain")
  func goesBack() async throws {
    #expect(try await put("old", reload: "true") == 0)
    // One that hangs has failed.
    for reload in ["false", "'sleep 60'"] {
      #expect(try await put("new", reload: reload) == 1)
      #expect(try String(contentsOfFile: served, encoding: .utf8) == "old")
    }
    // Also once the hook itself was killed while the web server loaded it.
    let killing = #"'kill -9 $(cut -d" " -f4 /proc/$PPID/stat)'"#
    #expect(try await put("new", reload: killing) != 0)
    #expect(try String(contentsOfFile: served, encoding: .utf8) == "new")
    #expect(try await put("new", reload: "false") == 1)
    #expect(try String(contentsOfFile: served, encoding: .utf8) == "old")
    #expect(try await put("new", reload: "true") == 0)
    #expect(try String(contentsOfFile: served, encoding: .utf8) == "new")
    #expect(try await put("newer", reload: "false") == 1)
    #expect(try String(contentsOfFile: served, encoding: .utf8) == "new")
  }

  @Test(
    "puts one key in use at a time: the next waits until the web server has loaded the one before")
  func takesTurns() async throws {
    for folder in ["a", "b"] {
      try FileManager.default.createDirectory(
        atPath: directory.path(folder), withIntermediateDirectories: true)
    }
    let (log, go) = (directory.path("log"), directory.path("go"))
    // Each reload says what is served when it begins and when it ends.
    let first =
      "'cat \(served) >> \(log); while ! test -e \(go); do sleep 0.05; done; cat \(served) >> \(log)'"
    async let one = put("1", reload: first, in: "a", timeout: 60)
    #expect(await eventually { (try? String(contentsOfFile: log, encoding: .utf8)) == "1" })
    async let other = put(
      "2", reload: "'cat \(served) >> \(log)'", in: "b", timeout: 60)
    // The second one has copied its key by then, and would switch at once.
    let renewed = directory.path("renewed/site")
    #expect(
      await eventually {
        (try? FileManager.default.contentsOfDirectory(atPath: renewed))?.count == 2
      })
    #expect(try String(contentsOfFile: served, encoding: .utf8) == "1")
    try directory.write("", to: "go")
    #expect(try await one == 0)
    #expect(try await other == 0)
    #expect(try String(contentsOfFile: log, encoding: .utf8) == "112")
  }
}
