import Foundation
import SslPinning
import SslPinningPlatform
import TestSupport

/// Apps that call every name once a second, each by every way that an app has.
///
/// - One fetches the list every two seconds, as apps do every hour: `announce --settle` is longer than that, so it has a
///   key before that is used, also if the registry dies in between.
/// - Others are new on their device, one after another (``meet(_:)``).
final class AcmeCrowd: Sendable {
  private struct Tally {
    var requests = 0
    var refused: [String] = []
    /// Requests that found nobody, while nginx was restarted.
    var absent = 0
    /// Requests that failed for any other reason.
    var failed: [String] = []
  }

  private let tally = Locked(Tally())
  private let isOver = Locked(false)
  private let machines: [AcmeMachine]
  private let app: App

  init(_ app: App, calling machines: [AcmeMachine]) {
    (self.app, self.machines) = (app, machines)
  }

  /// Seconds between two fetches of the list.
  static let refresh = 2
  /// What keys settle for before they are used.
  static let settle = 6

  /// Goes on until ``end()``.
  func run() async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { [self] in
        while !isOver.withLock({ $0 }) {
          _ = try? await app.client.refresh()
          try? await Task.sleep(for: .seconds(Self.refresh))
        }
      }
      for machine in machines {
        for name in machine.names {
          group.addTask { [self] in
            while !isOver.withLock({ $0 }) {
              let next = ContinuousClock.now + .seconds(1)
              for dialer in app.dialers { await call(name, of: machine, by: dialer) }
              try? await Task.sleep(until: next, clock: .continuous)
            }
          }
        }
      }
    }
  }

  func end() { isOver.withLock { $0 = true } }

  /// Has an app on a new device call every name once.
  func meet(_ newcomer: App) async {
    for machine in machines {
      for name in machine.names {
        for dialer in newcomer.dialers { await call(name, of: machine, by: dialer) }
      }
    }
  }

  private func call(_ name: String, of machine: AcmeMachine, by dialer: Dialer) async {
    guard let url = try? Site.url(name, machine.port) else { return }
    let before = machine.absences
    let answer = await dialer.dial(url)
    // Odd while nginx is stopped.
    let mayBeAbsent = before % 2 == 1 || machine.absences != before
    tally.withLock { tally in
      tally.requests += 1
      let text = "\(name) over \(dialer.name): \(answer.text)"
      switch answer {
      case .served(let body) where body == name: break
      case .refused: tally.refused.append(text)
      // At the drill's end.
      case .failed where Task.isCancelled: break
      case .failed where mayBeAbsent: tally.absent += 1
      case .served, .failed: tally.failed.append(text)
      }
    }
  }

  var requests: Int { tally.withLock(\.requests) }
  /// Requests that met no server.
  var absent: Int { tally.withLock(\.absent) }
  var refused: [String] { tally.withLock(\.refused) }
  var failed: [String] { tally.withLock(\.failed) }
}
