import Foundation
import TestSupport
import Testing

@testable import ssl_pinning_lab

@Suite("Replicas on one database", .serialized)
struct ReplicasDrillTests {
  private static func program() throws -> String { try BuiltProgram.path("ssl-pinning-lab") }

  /// The drill with these arguments, as a program and its arguments. Where it can, it runs in a network of
  /// its own: it lays wires, and every browser on the machine that learns of one gives up what it was
  /// loading (Chromium's `ERR_NETWORK_CHANGED`), those of other tests among them.
  private static func command(_ arguments: [String]) async throws -> (String, [String]) {
    let drill = [try program(), "drill", "replicas"] + arguments
    guard getuid() == 0, await PrivateMachine.isPermitted.value else {
      return (drill[0], Array(drill[1...]))
    }
    // All of it stays one process: what signals it reaches the drill.
    return ("unshare", ["--net", "sh", "-c", #"ip link set lo up && exec "$@""#, "sh"] + drill)
  }

  @Test(
    "go on serving and watching, and publish nothing twice and lose nothing, whatever fails",
    arguments: [[], ["--forwarders"]])
  func quick(_ more: [String]) async throws {
    let (program, arguments) = try await Self.command(["--quick", "--cut", "2"] + more)
    let end = try await ChildProcess.run(program, arguments, seconds: 240)
    #expect(end.exitCode == 0, "\(end.stdout)\(end.stderr)")
    #expect(end.stdout.contains(" 0 failures, "))
    #expect(end.stdout.contains(" 0 published twice, 0 lost, 0 times two leaders"))
  }

  @Test("leave nothing behind when the drill is ended", arguments: [SIGTERM, SIGKILL])
  func ended(_ signal: Int32) async throws {
    let (program, arguments) = try await Self.command(["--quick"])
    let drill = try ChildProcess(program, arguments)
    // By then both are up.
    try await drill.waitForOutput(containing: "started again", seconds: 120)
    // Keeps its network, so that wires that are left can be seen.
    let network = try #require(
      FileHandle(forReadingAtPath: "/proc/\(drill.processIdentifier)/ns/net"))
    let name = try #require(drill.stdout.firstMatch(of: /namespace (ppd[0-9a-f]+)/)).output.1
    let before = try await Self.namespaces()
    #expect(before.contains(name))
    let replicas = try Self.children("ssl-pinning", of: drill.processIdentifier)
    #expect(replicas.count == 2)
    let children = try replicas + Self.children("nginx", of: drill.processIdentifier)
    #expect(children.count == 3)
    #expect(try await Self.wires(of: network).contains("\(name)x0"))
    let end = try await drill.terminate(signal: signal, seconds: 60)
    #expect(end.exitCode == (signal == SIGTERM ? 1 : 128 + signal))
    #expect(
      await eventually {
        children.allSatisfy { access("/proc/\($0)/exe", F_OK) != 0 }
          && access("/run/netns/\(name)", F_OK) != 0
      })
    #expect(try await !Self.wires(of: network).contains(name))
  }

  /// The network devices of a namespace.
  private static func wires(of network: FileHandle) async throws -> String {
    let end = try await ChildProcess.run(
      "nsenter",
      ["--net=/proc/\(getpid())/fd/\(network.fileDescriptor)", "ip", "-o", "link", "show"])
    #expect(end.exitCode == 0, "\(end.stderr)")
    return end.stdout
  }

  private static func namespaces() async throws -> String {
    try await ChildProcess.run("ip", ["netns", "list"]).stdout
  }

  /// The children of a process that run this program. Not from `/proc/…/children`, which leaves some out while
  /// threads come and go.
  private static func children(_ name: String, of pid: Int32) throws -> [Int32] {
    try FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap { Int32($0) }
      .filter { child in
        let status = try? String(contentsOfFile: "/proc/\(child)/status", encoding: .utf8)
        let program = try? FileManager.default.destinationOfSymbolicLink(
          atPath: "/proc/\(child)/exe")
        return status?.contains("\nPPid:\t\(pid)\n") == true
          && program?.hasSuffix("/\(name)") == true
      }
  }

  @Test("are drilled as the arguments say, and with no others")
  func arguments() {
    #expect(ReplicasOptions([])?.cut == 60)
    #expect(ReplicasOptions(["--quick"])?.cut == 3)
    #expect(ReplicasOptions(["--quick", "--cut", "7"])?.cut == 7)
    #expect(ReplicasOptions(["--replicas", "3"])?.replicas == 3)
    for wrong in [
      ["--cut"], ["--cut", "0"], ["--cut", "x"], ["--replicas", "1"], ["--replicas", "4"],
      ["--what"],
    ] {
      #expect(ReplicasOptions(wrong) == nil, "\(wrong)")
    }
  }
}
