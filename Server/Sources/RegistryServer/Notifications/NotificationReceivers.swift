import CanonicalJSON
import Foundation
import RegistryCore
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Whoever is told.
protocol NotificationReceiver: Sendable {
  /// Its name in logs and metrics.
  var name: String { get }
  /// Hands it a message. Bounded in time.
  func deliver(_ message: NotificationMessage, at now: Int64) async -> DeliveryOutcome
}

/// What came of a delivery.
enum DeliveryOutcome: Sendable, Equatable {
  case delivered
  /// Not delivered, and why. `retryAfter`: seconds that the receiver wants to be left alone for. `refusal`: what it does
  /// not take, if it answered that.
  case failed(reason: String, retryAfter: Int64? = nil, refusal: DeliveryRefusal? = nil)
}

extension DeliveryRefusal {
  /// What a status says of the message; `nil` if it says something of the receiver, or of the moment.
  fileprivate init?(status: Int) {
    switch status {
    case 413: self = .tooLarge
    case 408, 425, 429: return nil
    case 400..<500: self = .content
    default: return nil
    }
  }
}

/// `notify.webhook`: a POST of the message, over https, or in clear text to this machine.
///
/// - The receiver's chain and name are checked, by the system's anchors or those of `notify.ca`. Redirects are not
///   followed: what is told, is told to the receiver that was named.
/// - Its dates hold at the server's time or at the machine's, as those of endpoints: whoever sets the machine's clock must
///   not silence what tells of it.
/// - While the server does not go by the machine's clock, a message that is refused is sent once more, signed with the
///   other time, but for its size or number: which of the two the receiver finds right, nobody here knows.
/// - Every answer but 2xx counts as not delivered.
struct WebhookReceiver: NotificationReceiver {
  let name = "webhook"
  private let url: RegistryURL
  private let secret: Secret?
  private let poster: ReportPoster
  private let wall: @Sendable () -> Int64

  /// Seconds that a request may take; a delivery is two of them while the clock is doubted.
  static let timeout = 10.0
  /// Seconds by which two times differ to a receiver that compares them.
  private static let skew: Int64 = 60

  /// - Parameters:
  ///   - secret: signs each message.
  ///   - anchors: a PEM file with the only anchors of the receiver's chain; `nil` means the system's.
  ///   - wall: what the machine's clock says, in Unix seconds.
  /// - Throws: ``ReceiverError`` if the anchors cannot be used.
  init(
    _ url: RegistryURL, secret: Secret?, anchors: String?, wall: @escaping @Sendable () -> Int64
  ) throws(ReceiverError) {
    (self.url, self.secret, self.wall) = (url, secret, wall)
    do {
      let trust: TrustMode =
        try anchors.map { .anchors(try CertificateFile.read(URL(filePath: $0))) } ?? .system
      poster = try ReportPoster(trust: trust)
    } catch {
      throw ReceiverError(
        setting: anchors == nil ? "notify.webhook" : "notify.ca", reason: "\(error)")
    }
  }

  func deliver(_ message: NotificationMessage, at now: Int64) async -> DeliveryOutcome {
    let wall = wall()
    let isDoubted = secret != nil && abs(wall - now) > Self.skew
    var outcome = DeliveryOutcome.delivered
    for time in isDoubted ? [now, wall] : [now] {
      do {
        let headers = try secret.map { try message.signature(by: $0, at: time) } ?? []
        let answer = try await poster.post(
          message.bytes, to: url, headers: headers, timeout: Self.timeout,
          at: TrustTime(clock: now, floor: wall, believesStatement: false))
        guard !(200..<300).contains(answer.status) else { return .delivered }
        outcome = .failed(
          reason: "it answered \(answer.status)",
          retryAfter: answer.retryAfter.flatMap { RetryAfter.seconds($0, at: now) },
          refusal: DeliveryRefusal(status: answer.status))
        guard answer.status != 413, answer.status != 429 else { break }
      } catch {
        return .failed(reason: "\(error)")
      }
    }
    return outcome
  }
}

/// `notify.command`: a program that gets the message on standard input.
///
/// - No shell, none of this process's descriptors, and nothing of the server's own configuration in its environment
///   (``ProgramRun``).
/// - It has 10 s; whatever it left in its process group is ended afterwards. What it writes counts for nothing, but the
///   beginning of standard error is logged if it fails.
/// - An end with 0 is a delivery. Every other one is none, and may be about what the message says.
struct CommandReceiver: NotificationReceiver {
  let name = "command"
  private let arguments: [String]
  private let timeout: Int64

  /// - Parameter timeout: milliseconds that the program may take.
  init(_ arguments: [String], timeout: Int64 = 10_000) {
    (self.arguments, self.timeout) = (arguments, timeout)
  }

  func deliver(_ message: NotificationMessage, at now: Int64) async -> DeliveryOutcome {
    // On a thread of its own: waiting for a program is nothing for those that tasks share.
    await withCheckedContinuation { continuation in
      BackgroundThread.start("notify.command") {
        continuation.resume(returning: run(message.bytes))
      }
    }
  }

  private func run(_ input: [UInt8]) -> DeliveryOutcome {
    do throws(ProgramRun.Fault) {
      let end = try ProgramRun.run(
        arguments, input: input, milliseconds: timeout, output: nil)
      guard let failure = end.failure else { return .delivered }
      return .failed(reason: "the command \(failure)\(said(end.errors))", refusal: .content)
    } catch {
      switch error {
      case .notStarted(let reason):
        return .failed(
          reason:
            "the command did not start: \(reason); hint: a program by its path, and no shell line")
      case .late(let errors):
        return .failed(
          reason: "the command did not end within \(timeout) ms\(said(errors))")
      case .tooMuch: return .failed(reason: "the command wrote too much")
      }
    }
  }

  private func said(_ errors: String) -> String {
    errors.isEmpty ? "" : ", and said \"\(errors)\""
  }
}

extension NotifyConfiguration {
  /// Those that are configured.
  ///
  /// - Parameter wall: what the machine's clock says, in Unix seconds; only who delivers asks for it.
  /// - Throws: ``ReceiverError``.
  func receivers(
    wall: @escaping @Sendable () -> Int64 = { SystemClock().now() }
  ) throws(ReceiverError) -> [any NotificationReceiver] {
    var receivers: [any NotificationReceiver] = []
    // The URL was checked when the configuration was read.
    if let webhook, let url = try? RegistryURL(webhook.revealed) {
      receivers.append(try WebhookReceiver(url, secret: secret, anchors: anchors, wall: wall))
    }
    if !command.isEmpty { receivers.append(CommandReceiver(command)) }
    return receivers
  }
}

/// Somebody who is to be told cannot be.
public struct ReceiverError: Error, Equatable, Sendable {
  /// The setting that cannot be used.
  public let setting: String
  /// Why, in words.
  public let reason: String
}

extension ReceiverError: CustomStringConvertible {
  public var description: String {
    "\(setting) cannot be used: \(reason)"
      + (reason.contains("hint:") ? "" : "; hint: a file of certificates in PEM")
  }
}

extension ReceiverError: ExplainedError {}

/// What a receiver gets: all that changed since the last delivery, in JSON.
struct NotificationMessage: Sendable {
  /// The form of the message; it changes if a field comes to mean something else.
  static let version: Int64 = 1

  let bytes: [UInt8]

  /// - Parameters:
  ///   - server: the name of the machine.
  ///   - now: when it is made, in Unix seconds.
  init(_ changes: [ConditionChange], from server: String, at now: Int64) {
    let object: JSONObject = [
      "version": .integer(Self.version), "server": .string(server), "sent": .integer(now),
      "refusing": .bool(changes.contains { $0.phase == .begun && $0.condition.isRefusing }),
      "changes": .array(changes.map { .object($0.json(from: server)) }),
    ]
    bytes = JSONValue.object(object).canonicalBytes
  }

  /// The headers by which a receiver knows that the message is from whoever has the secret, and is no old one: HMAC
  /// with SHA-256 (RFC 2104) over the time, a full stop and the body.
  func signature(by secret: Secret, at now: Int64) throws(CertificateError) -> [(
    name: String, value: String
  )] {
    let tag = try MessageAuthentication.tag(
      over: Array("\(now).".utf8) + bytes, key: Array(secret.revealed.utf8))
    return [
      ("X-SslPinning-Timestamp", "\(now)"),
      ("X-SslPinning-Signature", "sha256=" + hex(tag)),
    ]
  }
}

extension ConditionChange {
  /// The same for a repetition, on every server and after a restart, and where the condition begins again or comes to
  /// refuse apps. What each server sees for itself has an id for each: the end of one's trouble is not that of another's.
  func id(from server: String) -> String {
    let identity = condition.identity + (condition.isOfLeader ? "" : "\u{1f}" + server)
    return Base64URL.encode(Digest.sha256(identity.utf8).prefix(15))
      + (phase == .over ? ".over" : "")
  }

  func json(from server: String) -> JSONObject {
    var object: JSONObject = [
      "id": .string(id(from: server)), "phase": .string(phase.rawValue),
      "kind": .string(condition.kind.name),
      "severity": .string(condition.isRefusing ? "critical" : "warning"),
      "refusing": .bool(condition.isRefusing), "since": .integer(condition.since),
      "at": .integer(at), "message": .string(condition.message),
    ]
    if !condition.file.isEmpty { object["file"] = .string(condition.file) }
    if !condition.subject.isEmpty { object["subject"] = .string(condition.subject) }
    if let pin = condition.pin { object["pin"] = .string(pin.base64) }
    return object
  }
}
