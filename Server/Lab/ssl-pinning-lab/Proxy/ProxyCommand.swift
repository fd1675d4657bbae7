import CanonicalJSON
import FaultLab
import Foundation
import SslPinning
import SslPinningPlatform
import TLSTools

/// `lab proxy`: a man in the middle for a device on the desk, which says who lets him in.
enum ProxyCommand {
  /// - Returns: 0 if every host of `--must-refuse` refused, 1 if one let the attacker in, 3 if one was never tried or
  ///   the proxy could not start, 2 for wrong usage.
  static func run(_ arguments: [String], say: @escaping @Sendable (String) -> Void) async -> Int32 {
    let options: ProxyOptions
    do throws(ProxyOptions.WrongUsage) { options = try ProxyOptions(arguments) } catch {
      Terminal.complain(error.description)
      return 2
    }
    do {
      let end = try await DemoDirectory()
      defer { end.remove() }
      return try await run(options, until: end, say: say)
    } catch {
      Terminal.complain("\(error)")
      return 3
    }
  }

  private static func run(
    _ options: ProxyOptions, until end: DemoDirectory, say: @escaping @Sendable (String) -> Void
  ) async throws -> Int32 {
    let (authority, file) = try LabAuthority.authority(options, fallback: end.url)
    let summary = Locked(ProxySummary(mustRefuse: options.mustRefuse))
    let isJSON = options.isJSON
    let proxy = try LabProxy(
      listen: options.listen, authority: authority, mode: options.mode, attacking: options.hosts
    ) { connection in
      // Under the lock, so that a line stands before a sum that has it.
      summary.withLock { summary in
        summary.add(connection)
        say(isJSON ? text(connection.json) : "\(clock()) \(connection.line)")
      }
    }
    let place = "\(proxy.endpoint)"
    if isJSON {
      say(text(["listening": .string(place), "ca": .string(file)]))
    } else {
      for line in instructions(options, proxy.endpoint, file) { say(line) }
    }
    await end.untilTerminated {
      guard let seconds = options.seconds else { return }
      Task {
        try await Task.sleep(nanoseconds: UInt64(seconds * 1e9))
        end.finish()
      }
    }
    proxy.stop()
    return summary.withLock { summary in
      if isJSON {
        say(text(["summary": .object(summary.json)]))
      } else {
        for line in [""] + summary.lines { say(line) }
      }
      return summary.exitCode
    }
  }

  private static func text(_ object: JSONObject) -> String {
    String(decoding: JSONValue.object(object).canonicalBytes, as: UTF8.self)
  }

  private static func clock() -> String {
    let formatter = DateFormatter()
    formatter.dateFormat = "HH:mm:ss"
    return formatter.string(from: Date())
  }

  /// What to do on the device.
  private static func instructions(
    _ options: ProxyOptions, _ place: Endpoint, _ file: String
  ) -> [String] {
    let isLocal = place.address == "::1" || place.address.hasPrefix("127.")
    let hosts = options.hosts.map { "\($0)" }.joined(separator: ", ")
    return [
      "The proxy is \(place), in mode \(options.mode.rawValue), for \(hosts.isEmpty ? "every host" : hosts).",
      "Its CA is \(file), and http://\(place)/ca.cer for a device.", "",
    ]
      + (isLocal
        ? [
          "Only this machine reaches it: curl --proxy http://\(place) --cacert \(file) https://…",
          "A device needs --listen with this machine's address on its network.",
        ]
        : [
          "On the device, in the settings of its Wi-Fi: HTTP proxy, manual, \(place.address), port \(place.port).",
          "Open http://\(place)/ca.cer there and install what comes. On an iPhone trust it too: Settings, General,",
          "About, Certificate Trust Settings. On Android apps trust it only if they say so (debug-overrides).",
        ])
      + [
        "",
        "Who trusts this CA is protected from nobody who has its key: take it off the device afterwards.",
        "Ctrl-C ends it and says who let the attacker in.", "",
      ]
  }
}

/// The CA of the proxy.
enum LabAuthority {
  private static let limit = 1 << 20

  /// The tester's own, or the one of a directory, which is made there if it is missing.
  ///
  /// - Returns: it, and the file of its certificates.
  static func authority(
    _ options: ProxyOptions, fallback: URL
  ) throws -> (CertificateAuthority, file: String) {
    if let (certificate, key) = options.authority {
      return (try read(certificate, key), certificate)
    }
    let directory = options.directory.map { URL(filePath: $0, directoryHint: .isDirectory) }
    let place = directory ?? fallback
    let (certificate, key) = (place.appending(path: "ca.pem"), place.appending(path: "ca.key"))
    let path = certificate.path(percentEncoded: false)
    if FileManager.default.fileExists(atPath: path) {
      return (try read(path, key.path(percentEncoded: false)), path)
    }
    try FileManager.default.createDirectory(
      at: place, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let authority = try CertificateAuthority.makeRoot(
      name: "Lab proxy: trust it for tests alone", validity: .daysFromNow(30))
    try authority.key.write(to: key)
    try PEMFile.create(path, mode: 0o644, bytes: authority.root.pem.utf8)
    return (authority, path)
  }

  private static func read(_ certificate: String, _ key: String) throws -> CertificateAuthority {
    func text(_ path: String) throws -> String {
      do throws(SmallFile.Failure) {
        return String(decoding: try SmallFile.read(path, limit: limit), as: UTF8.self)
      } catch { throw ProxyOptions.WrongUsage("cannot read \(path): \(error)") }
    }
    let authority = try CertificateAuthority(
      chain: Certificate.certificates(inPEM: text(certificate)), key: PrivateKey(pem: text(key)))
    guard let end = authority.root.validity?.notAfter, end > Clocks.system.wall() else {
      throw ProxyOptions.WrongUsage("\(certificate) has ended; hint: remove it and its key")
    }
    return authority
  }
}
