import CanonicalJSON
import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules

/// What an app ships, as `verify` and `get` are told: `--key`, or root keys, and the registry's name.
struct RegistryTrustArguments {
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
