import Foundation
import TestSupport
import Testing

@Suite("up under a service manager")
struct NotifyTests {
  /// The place of the first message from this one on that has the line.
  private static func place(
    of line: String, in socket: NotifySocket, from start: Int = 0
  ) async throws -> Int {
    let isThere = await eventually { socket.messages.dropFirst(start).contains { $0.has(line) } }
    #expect(isThere, "\(line) in \(socket.messages)")
    return try #require(
      socket.messages.indices.first { $0 >= start && socket.messages[$0].has(line) })
  }

  @Test(
    "tells when it is ready, lives, reads its configuration again and stops",
    arguments: [true, false])
  func wholeLife(isAbstract: Bool) async throws {
    try await withTemporaryDirectory { directory in
      try Keys.signing.get().write(to: directory.file("prv.pem"))
      try directory.write(
        "keys: [{fqdn: localhost, port: 1}]\ntls: {dir: \(directory.path())}\nstorage: {type: memory}",
        to: "config.yaml")
      let path = directory.path("notify")
      let socket = try NotifySocket(isAbstract ? "@\(path)" : path)
      let server = try Tool.start(
        ["up", "--config-path", directory.path(), "--listen", "127.0.0.1:0"],
        environment: ["NOTIFY_SOCKET": socket.name, "WATCHDOG_USEC": "50000"])
      let ready = try await Self.place(of: "READY=1", in: socket)
      #expect(socket.messages[ready].contains("\nSTATUS=listening on 127.0.0.1:"))
      // Whoever is told is served at once.
      try await server.waitForOutput(containing: "listening on ", seconds: 5)
      let alive = try await Self.place(of: "WATCHDOG=1", in: socket)
      _ = try await Self.place(of: "WATCHDOG=1", in: socket, from: alive + 1)
      server.send(SIGHUP)
      let reloading = try await Self.place(of: "RELOADING=1", in: socket)
      #expect(socket.messages[reloading].contains(/\nMONOTONIC_USEC=[1-9][0-9]+$/))
      let again = try await Self.place(of: "READY=1", in: socket, from: reloading)
      // A configuration that is refused is no reason to wait for ever.
      try directory.write("keys: [", to: "config.yaml")
      server.send(SIGHUP)
      let refused = try await Self.place(of: "RELOADING=1", in: socket, from: again)
      _ = try await Self.place(of: "READY=1", in: socket, from: refused)
      #expect(!socket.lines.contains("STOPPING=1"))
      #expect(try await server.terminate(seconds: 30).exitCode == 0)
      #expect(socket.lines.count { $0 == "STOPPING=1" } == 1)
      #expect(ready < alive)
    }
  }

  @Test("gives no sign of life to nobody, and none of another process")
  func otherProcess() async throws {
    try await withTemporaryDirectory { directory in
      try Keys.signing.get().write(to: directory.file("prv.pem"))
      try directory.write(
        "keys: [{fqdn: localhost, port: 1}]\ntls: {dir: \(directory.path())}\nstorage: {type: memory}",
        to: "config.yaml")
      let socket = try NotifySocket(directory.path("notify"))
      let server = try Tool.start(
        ["up", "--config-path", directory.path(), "--listen", "127.0.0.1:0"],
        environment: ["NOTIFY_SOCKET": socket.name, "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"])
      _ = try await Self.place(of: "READY=1", in: socket)
      #expect(try await server.terminate(seconds: 30).exitCode == 0)
      #expect(socket.lines.contains("STOPPING=1") && !socket.lines.contains("WATCHDOG=1"))
    }
  }
}

extension String {
  /// Whether this is one of its lines.
  fileprivate func has(_ line: String) -> Bool {
    split(separator: "\n").contains { $0 == line }
  }
}
