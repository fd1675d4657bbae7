import CanonicalJSON
import Foundation
import SslPinningPlatform

/// Tries what a configuration names, as a start would, and starts nothing: keys and key sets, anchors and
/// vantage points, the listener's certificate and address, the store.
///
/// - What would keep the server from starting is thrown; what it would warn of is kept in ``warnings``.
/// - Nothing is made and nothing is changed. Of a store on disk that is not there yet the place is looked at; a
///   database is connected to, and its tables are left to the server.
/// - An address that is in use is a warning: as a rule the server runs.
public struct ConfigurationTrial: Sendable {
  /// What a start would log as a warning.
  public let warnings: [String]

  /// Tries a configuration out. Waits for a database, a few seconds at most.
  ///
  /// - Throws: ``RegistryServiceError``, what ``RegistryService`` would throw.
  public init(_ configuration: ServerConfiguration) throws(RegistryServiceError) {
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
    RegistryService.warnIfExposed(configuration.tls.directory + "/prv.pem", log)
    do throws(StoreError) { try configuration.storage.tryOut() } catch { throw .store(error) }
    do throws(AnchorsError) { _ = try TLSEndpointObserver(configuration.tls) } catch {
      throw .anchors(error)
    }
    _ = try AdminTokenKey(configuration, signer: signer, log: log)
    var warnings: [String] = []
    do throws(HTTPServerError) {
      warnings += try Self.tryListener(of: configuration)
    } catch { throw .listening(error) }
    UnusedKeySets.warn(of: configuration, log)
    for document in configuration.documents {
      if let problem = signer.problem(of: document.file, after: DocumentState()) {
        warnings.append("\(document.file) cannot be signed as it should be: \(problem)")
      }
    }
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
  func tryOut() throws(StoreError) {
    switch self {
    case .memory: return
    case .sqlite(let path):
      guard access(path, F_OK) == 0 else { return try Self.checkPlace(of: path) }
      guard access(path, R_OK | W_OK) == 0 else { throw .cannotOpen(path: path, errno: errno) }
      try SQLiteSchema.check(try SQLiteConnection(path: path), path: path)
    case .fileSystem(let directory):
      let records = directory + "/records"
      guard access(records, F_OK) == 0 else { return try Self.checkPlace(of: records) }
      guard access(records, R_OK | W_OK | X_OK) == 0 else {
        throw .cannotOpen(path: records, errno: errno)
      }
    case .postgres(let dsn, _):
      let dsn = try PostgresDSN(dsn)
      try PostgresSchema().check(try PostgresConnection(dsn), place: dsn.place)
    case .redis(let dsn, _): _ = try RedisConnection(try RedisDSN(dsn))
    }
  }

  /// Whether what is not there could be made: in the nearest directory above that is.
  private static func checkPlace(of path: String) throws(StoreError) {
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
