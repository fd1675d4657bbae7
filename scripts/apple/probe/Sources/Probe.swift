import Foundation
import SslPinning

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Asks the servers of `first-day.sh` and prints a line for each answer: the number of the test in
/// `docs/first-day-on-a-mac.md`, what was asked, what came. It judges nothing: a person reads the lines.
@main
struct Probe {
  static func main() async {
    guard let servers = Servers(environment: ProcessInfo.processInfo.environment) else {
      print("error: PROBE_… variables are missing; hint: first-day.sh sets them")
      return
    }
    do throws(FixedPinsError) {
      for (version, port) in servers.ports {
        try await basics(servers, version, port)
        try await resumption(servers, version, port)
      }
      let session = try servers.client(pin: servers.pin).createPinnedSession()
      print("6\thttp:\(await ask(session, "http://localhost:\(servers.clear)/6"))")
      session.invalidateAndCancel()
    } catch { print("error: \(error)") }
  }

  /// Tests 4 and 5: the right pin, then another one.
  static func basics(
    _ servers: Servers, _ version: String, _ port: String
  ) async throws(FixedPinsError) {
    let right = try servers.client(pin: servers.pin)
    let wrong = try servers.client(pin: servers.wrongPin)
    print("4\t\(version), right pin:\(await ask(right, port, "/4"))")
    print("5\t\(version), wrong pin:\(await ask(wrong, port, "/5"))")
  }

  /// Tests 9 and 10: who is asked about a TLS session that may be resumed. Whether it was stands in the
  /// server's log, by path.
  static func resumption(
    _ servers: Servers, _ version: String, _ port: String
  ) async throws(FixedPinsError) {
    let client = try servers.client(pin: servers.pin)
    let verdicts = Verdicts()
    let listener = Task { for await _ in client.evaluations { await verdicts.add() } }
    let session = client.createPinnedSession()
    for number in 1...2 {
      print(
        "9\t\(version), \(number):\(await ask(session, "https://localhost:\(port)/9-\(number)"))")
    }
    // Verdicts come over a stream of their own, a moment after the answer.
    try? await Task.sleep(nanoseconds: 500_000_000)
    print("9\t\(version): \(await verdicts.count) verdicts for two requests")
    listener.cancel()
    session.invalidateAndCancel()

    let other = try servers.client(pin: servers.wrongPin)
    print(
      "10\t\(version), wrong pin after a pinned session:\(await ask(other, port, "/10-pinned"))")
    guard let plain = plainSession() else { return }
    let first = await ask(plain, "https://localhost:\(port)/10-plain-first")
    print("10\t\(version), plain:\(first)")
    plain.invalidateAndCancel()
    print("10\t\(version), wrong pin after a plain session:\(await ask(other, port, "/10-plain"))")
  }

  /// A request over a session of the client, and whether the client knows its refusal.
  static func ask(_ client: FixedPinsClient, _ port: String, _ path: String) async -> String {
    let session = client.createPinnedSession()
    defer { session.invalidateAndCancel() }
    do {
      return answered(try await session.data(from: url("https://localhost:\(port)\(path)")).1)
    } catch {
      return " \(failed(error)); verdict: \(client.refusal(for: error)?.description ?? "none")"
    }
  }

  static func ask(_ session: URLSession, _ address: String) async -> String {
    do { return answered(try await session.data(from: url(address)).1) } catch {
      return " \(failed(error))"
    }
  }

  static func url(_ text: String) throws -> URL {
    guard let url = URL(string: text) else { throw URLError(.badURL) }
    return url
  }

  static func answered(_ response: URLResponse) -> String {
    " answered \((response as? HTTPURLResponse)?.statusCode ?? 0)"
  }

  static func failed(_ error: any Error) -> String {
    let known = error as NSError
    return "failed (\(known.domain) \(known.code))"
  }
}

/// How many verdicts were told.
actor Verdicts {
  private(set) var count = 0
  func add() { count += 1 }
}
