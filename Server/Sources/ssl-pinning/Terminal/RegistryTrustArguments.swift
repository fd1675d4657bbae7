import CanonicalJSON
import Foundation
import RegistryServer
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// What an app ships, as `verify` and `get` are told: `--key`, or root keys, and the registry's name.
struct RegistryTrustArguments: Hashable {
  private static let rootKey = Flag.texts(
    "--root-key", "KEY", "one of the app's rootKeys; then a statement is required")
  private static let rootThreshold = Flag.number(
    "--root-threshold", "K", "so many of them must sign; needed where there are several",
    in: 1...1000)
  private static let requireStatement = Flag(
    "--require-statement", "refuse a document of format 1, as an app with requireStatement does")

  static let flags = [
    KeyArgument.optionalFlag.description, rootKey.description, rootThreshold.description,
    RegistryNameArgument.flag.description, requireStatement.description,
  ]

  /// The key of format 1.
  let format1Key: VerificationKey?
  private let rootKeys: [TrustKey]
  private let hasRootKeys: Bool
  private let threshold: Int
  private let name: String?
  private let requiresStatement: Bool

  /// Reads the flags.
  ///
  /// - Parameter place: the file or URL of the document, which names it unless the user does.
  init(_ invocation: Invocation, place: String) throws(CommandFailure) {
    let roots = try KeyArgument.trustKeys(Self.rootKey, invocation)
    format1Key =
      invocation[KeyArgument.optionalFlag] == nil ? nil : try KeyArgument.read(invocation)
    hasRootKeys = !roots.isEmpty
    if roots.isEmpty {
      guard let format1Key else {
        throw .usage(
          UsageError.missingFlag(KeyArgument.flag.description).description
            + "; hint: or --root-key")
      }
      guard invocation[Self.rootThreshold] == nil else {
        throw .usage("--root-threshold is for root keys; hint: --root-key names them")
      }
      (rootKeys, threshold) = ([TrustKey(format1Key)], 1)
    } else {
      guard let count = invocation[Self.rootThreshold] ?? (roots.count == 1 ? 1 : nil) else {
        let flag = Self.rootThreshold.description
        throw .usage("missing \(flag.usage): \(flag.help)")
      }
      (rootKeys, threshold) = (roots, Int(count))
    }
    requiresStatement = invocation[Self.requireStatement] || !roots.isEmpty
    name = invocation[RegistryNameArgument.flag] ?? Self.name(of: place)
  }

  /// Trust for one document.
  ///
  /// - Throws: where the document has a statement and nobody said what registry it should be of.
  func trust(for document: [UInt8]) throws(CommandFailure) -> RegistryTrust {
    let hasStatement =
      (try? JSONValue(parsing: document))?.objectValue?["statement"] != nil
    guard name != nil || !hasStatement else {
      let flag = RegistryNameArgument.flag.description
      throw .usage("missing \(flag.usage): \(flag.help)")
    }
    do throws(DocumentFault) {
      return try RegistryTrust(
        registry: name ?? "", rootKeys: rootKeys, threshold: threshold, signingKey: format1Key,
        requiresStatement: requiresStatement)
    } catch { throw .usage("the root keys cannot be: \(error)") }
  }

  /// The configuration of an app that ships this.
  func config(endpoint: String, trust: TrustMode, timeout: Double) -> SslPinningConfig {
    var config = SslPinningConfig(
      endpointUrl: endpoint,
      signingKeyBase64: format1Key.map { StrictBase64.encode($0.spkiDER) } ?? "", trust: trust,
      storage: .none, fetchTimeout: timeout)
    if hasRootKeys {
      config.rootKeys = rootKeys.map { StrictBase64.encode($0.spkiDER) }
      config.rootThreshold = threshold
    }
    config.registryName = name
    config.requireStatement = requiresStatement
    return config
  }

  /// The last part of the path.
  private static func name(of place: String) -> String? {
    guard place != InputFile.standardInput else { return nil }
    let path = place.contains("://") ? URL(string: place)?.path ?? "" : place
    return path.split(separator: "/").last.map(String.init)
  }
}

extension RegistryError {
  /// The message, and the flag that helps where one does.
  var toldToOperators: String {
    switch self {
    case .invalidStatement(.otherRegistry), .invalidKeySet(_, .otherRegistry):
      "\(self); hint: --registry-name says which one is meant"
    case .noFormat1Key: "the document has no statement; hint: format 1 is verified by --key"
    default: "\(self)"
    }
  }
}

/// Who vouches for servers: `--ca` and `--pinned-keys-only`.
enum TrustArguments {
  static let ca = Flag.text(
    "--ca", "FILE", "trust only the certificates in this file (PEM or DER), not the system's")
  static let pinnedKeysOnly = Flag(
    "--pinned-keys-only", "let the pin alone decide: names, dates and chains are NOT checked")

  /// The trust mode that the user chose.
  static func read(_ invocation: Invocation) throws(CommandFailure) -> TrustMode {
    let file = invocation[ca]
    guard invocation[pinnedKeysOnly] else {
      return try file.map { (path) throws(CommandFailure) in
        .anchors(try certificates(path).map(\.der))
      } ?? .system
    }
    guard file == nil else {
      throw .usage("--ca and --pinned-keys-only exclude each other; hint: pass one of them")
    }
    return .pinnedKeysOnly
  }

  /// The certificates of `--ca`, for commands that judge chains without pins.
  static func authorities(_ invocation: Invocation) throws(CommandFailure) -> ChainValidator? {
    guard let path = invocation[ca] else { return nil }
    let certificates = try certificates(path)
    do throws(CertificateError) { return try ChainValidator(anchors: certificates) } catch {
      throw .no("\(path): \(error)")
    }
  }

  private static func certificates(_ path: String) throws(CommandFailure) -> [Certificate] {
    let bytes = try InputFile.read(path, limit: 16 << 20)
    let blocks: [PEMBlock]
    do throws(PEMError) { blocks = try PEMBlock.blocks(in: bytes) } catch {
      throw .no("\(path): \(error)")
    }
    let found = blocks.isEmpty ? [bytes] : blocks.filter { $0.label == "CERTIFICATE" }.map(\.bytes)
    guard !found.isEmpty else { throw .no("\(path) holds no certificate; hint: \(hint)") }
    var certificates: [Certificate] = []
    for der in found {
      do throws(CertificateError) { certificates.append(try Certificate(der: der)) } catch {
        throw .no("\(path): \(error); hint: \(hint)")
      }
    }
    return certificates
  }

  private static let hint = "--ca takes the CA's certificate, PEM or DER"
}

/// `--registry-name`: what key sets and statements carry, so that one registry never passes for
/// another.
enum RegistryNameArgument {
  static let flag = Flag.text(
    "--registry-name", "NAME", "the name that clients expect: the last part of the URL's path")
}

/// The flags of commands that read the server's configuration.
enum ServerArguments {
  private static let file = Flag.text(
    "--config-file", "FILE", "the configuration; config.yaml by default")
  private static let path = Flag.text(
    "--config-path", "DIR", "where a relative FILE is, and tls; else here, or /etc/ssl-pinning")

  private static let settings: [(setting: Setting, flag: Flag<String>)] = Setting.allCases
    .compactMap { setting in
      guard let name = setting.flag else { return nil }
      let row = setting.row
      var help = row.plainHelp
      if row.isSwitch {
        help += "; true without =BOOL"
      } else if !setting.standard.isEmpty {
        help += "; \(setting.standard) by default"
      }
      var description = Flag.text(name, row.placeholder, help).description
      description.short = row.flag?.short
      if row.isSwitch { description.impliedValue = "true" }
      return (setting, Flag(description: description))
    }

  /// The reference server's names of flags that have another here.
  private static let others: [(setting: Setting, flag: Flag<String>)] = settings.compactMap {
    setting, flag in
    setting.row.flag?.other.map { other in
      (
        setting,
        Flag.text(other, setting.row.placeholder, "as \(flag.description.name), which wins")
      )
    }
  }

  /// Where the configuration is.
  static let places = [file.description, path.description]

  /// All of them, in the order of the help.
  static let descriptions =
    places + (settings + others).map(\.flag.description)

  /// Those that may stand before the command: for the reference server they belong to the program.
  static let leading = descriptions.filter {
    $0.name.hasPrefix("--config-") || $0.name.hasPrefix("--log-")
  }

  /// What a configuration is to be read from.
  static func sources(_ invocation: Invocation) -> ConfigurationSources {
    var texts: [Setting: String] = [:]
    for (setting, flag) in settings + others { texts[setting] = texts[setting] ?? invocation[flag] }
    return ConfigurationSources(
      file: invocation[file], directory: invocation[path], flags: texts)
  }

  /// Reads it.
  ///
  /// - Throws: what the command line says wrongly is wrong usage, what was read and is no good is
  ///   "no", and a file that is not there is "could not".
  static func configuration(
    _ sources: ConfigurationSources
  ) throws(CommandFailure) -> EffectiveConfiguration {
    do throws(ConfigurationError) { return try sources.effective() } catch {
      switch (error, error.origin) {
      case (.unreadable, _):
        throw .couldNotFindOut("\(error); hint: --config-file names the configuration")
      case (_, .flag): throw .usage("\(error)")
      default: throw .no(error.description(file: sources.file))
      }
    }
  }

  /// Whether the command line says where the configuration is.
  static func isNamed(_ invocation: Invocation) -> Bool {
    invocation[file] != nil || invocation[path] != nil
  }

  /// The configuration that ``up`` would read here; `nil` if there is none and none was named.
  static func configurationAtHand(
    _ invocation: Invocation
  ) throws(CommandFailure) -> EffectiveConfiguration? {
    let sources = sources(invocation)
    let isThere =
      isNamed(invocation) || InputFile.exists(sources.file)
      || sources.environment[Setting.variablePrefix + "KEYS"] != nil
    return isThere ? try configuration(sources) : nil
  }
}
