import Foundation
import TestSupport
import Testing

@Suite("the hook that puts renewed keys in use") struct AnnounceHookTests {
  @Test("has its link go back to what was served if the web server cannot load the new chain")
  func goesBack() async throws {
    let directory = try TemporaryDirectory()
    let hook = Vectors.package.appending(path: "packaging/announce-renewed")
    let served = directory.path("served/site/key.pem")
    func put(_ text: String, reload: String) async throws -> Int32 {
      for name in ["key.pem", "chain.pem"] { try directory.write(text, to: name) }
      try directory.write(
        """
        served=\(directory.path("served"))
        renewed=\(directory.path("renewed"))
        reload=\(reload)
        announce=(x)
        """, to: "announce.conf")
      return try await ChildProcess.run(
        "bash",
        [
          hook.path(percentEncoded: false), "put", "site", directory.path("key.pem"),
          directory.path("chain.pem"),
        ], environment: ["ANNOUNCE_RENEWED_CONF": directory.path("announce.conf")]
      ).exitCode
    }
    #expect(try await put("old", reload: "true") == 0)
    #expect(try await put("new", reload: "false") == 1)
    #expect(try String(contentsOfFile: served, encoding: .utf8) == "old")
    #expect(try await put("new", reload: "true") == 0)
    #expect(try String(contentsOfFile: served, encoding: .utf8) == "new")
  }
}
