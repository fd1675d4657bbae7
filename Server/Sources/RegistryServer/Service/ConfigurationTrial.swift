import CanonicalJSON
import Foundation
import HTTPServing
import RegistryCore
import RegistryStores
import SslPinningPlatform

/// Tries what a configuration names, as a start would, and starts nothing: keys and key sets, anchors and
/// vantage points, the listener's certificate and address, the store, the directory of copies.
///
/// - What would keep the server from starting is thrown; what it would warn of is kept in ``warnings``.
/// - Nothing is made and nothing is changed. Of a store on disk that is not there yet the place is probed; a
///   database is connected to, and its tables are left to the server.
/// - An address that is in use is a warning: as a rule the server runs.
public struct ConfigurationTrial: Sendable {
  /// What a start would log as a warning.
  public let warnings: [String]

  /// Tries a configuration out. Waits for a database, a few seconds at most.
  ///
  /// - Parameter now: Unix time in seconds.
  /// - Throws: ``RegistryServiceError``, what ``RegistryService`` would throw.
  public init(
    _ configuration: ServerConfiguration, at now: Int64
  ) async throws(RegistryServiceError) {
    let told = Locked<[String]>([])
    let log = ServerLog(
      level: .warn, now: { 0 },
      sink: { line in
        guard let message = (try? JSONValue(parsing: line))?.objectValue?["message"]?.stringValue
        else { return }
        told.withLock { $0.append(message) }
      })
    let signer: DocumentSigner
    do throws(DocumentSignerError) {
      signer = try DocumentSigner(
        directory: configuration.tls.directory, publishing: configuration.publishing)
    } catch { throw .signer(error) }
    KeyCare.warn(of: configuration, signer: signer, log)
    let states = try await StoredDocuments.states(
      of: configuration.documents.map(\.file), in: configuration, signer)
    do throws(AnchorsError) { _ = try TLSEndpointProber(configuration.tls) } catch {
      throw .anchors(error)
    }
    _ = try AdminTokenKey(configuration, signer: signer, log: log)
    var warnings: [String] = []
    do throws(HTTPServerError) {
      warnings += try Self.tryListener(of: configuration)
    } catch { throw .listening(error) }
    UnusedKeySets.warn(of: configuration, log)
    for document in configuration.documents {
      let state = states[document.file] ?? DocumentState()
      if let problem = signer.problem(of: document.file, after: state, at: now) {
        warnings.append(
          problem.isAhead
            ? "\(document.file): \(problem)"
            : "\(document.file) cannot be signed as it should be: \(problem)")
      }
    }
    warnings += PublishingTrial.warnings(configuration, signer)
    self.warnings = told.withLock { $0 } + warnings
  }

  private static func tryListener(
    of configuration: ServerConfiguration
  ) throws(HTTPServerError) -> [String] {
    _ = try configuration.server.listenerIdentity()
    var warnings: [String] = []
    for address in [configuration.listen, configuration.metricsListen].compactMap(\.self) {
      do throws(HTTPServerError) {
        close(try ListeningSocket.open(address).descriptor)
      } catch {
        guard case .addressInUse = error else { throw error }
        warnings.append("\(address) is in use, by this server if it runs")
      }
    }
    return warnings
  }
}

extension StorageConfiguration {
  /// Whether the store could be opened, without making anything.
  ///
  /// - Returns: whether it is there, and of this version: so that opening it changes nothing.
  func tryOut() throws(StoreError) -> Bool {
    switch self {
    case .memory: return false
    case .sqlite(let path):
      guard access(path, F_OK) == 0 else {
        try Self.checkPlace(of: path)
        return false
      }
      guard access(path, R_OK | W_OK) == 0 else { throw .cannotOpen(path: path, errno: errno) }
      return try SQLiteSchema.check(try SQLiteConnection(path: path), path: path)
        == SQLiteSchema.newest
    case .fileSystem(let directory):
      let records = directory + "/records"
      guard access(records, F_OK) == 0 else {
        try Self.checkPlace(of: records)
        return false
      }
      guard access(records, R_OK | W_OK | X_OK) == 0 else {
        throw .cannotOpen(path: records, errno: errno)
      }
      return true
    case .postgres(let dsn, _, let isInsecure):
      let dsn = try PostgresDSN(dsn, isInsecure: isInsecure)
      return try PostgresSchema().isNewest(try PostgresConnection(dsn), place: dsn.place)
    case .redis(let dsn, _, let isInsecure):
      _ = try RedisConnection(try RedisDSN(dsn, isInsecure: isInsecure))
      return true
    }
  }

  /// Whether what is not there could be made: in the nearest directory above that is.
  static func checkPlace(of path: String) throws(StoreError) {
    var place = URL(filePath: path).standardizedFileURL
    var name: String
    repeat {
      place.deleteLastPathComponent()
      // Without the slash behind: a file that stands where a directory should is there.
      name = "/" + place.pathComponents.dropFirst().joined(separator: "/")
    } while access(name, F_OK) != 0 && place.pathComponents.count > 1
    var isDirectory: ObjCBool = false
    guard FileManager.default.fileExists(atPath: name, isDirectory: &isDirectory),
      isDirectory.boolValue
    else { throw .cannotOpen(path: path, reason: "\(name) is no directory") }
    guard access(name, W_OK | X_OK) == 0 else { throw .cannotOpen(path: path, errno: errno) }
  }
}
