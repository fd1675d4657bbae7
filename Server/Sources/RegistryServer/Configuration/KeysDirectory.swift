import Foundation
import TLSTools

/// `keys_dir`: entries of `keys` in files of their own, such as one for each team.
///
/// - Files whose names end in `.yaml`, `.yml` or `.json` and begin with no dot, in the order of their names' bytes. Each
///   is a mapping with `keys`, and with nothing else: no file of a team sets what is the server's, and none is empty.
/// - Their entries come behind those of the configuration, and are judged with them as if they stood in it.
/// - All or nothing: a file that is no good is an error of the configuration. Left out, its hosts would leave the list.
/// - Together they may be as large as a configuration.
enum KeysDirectory {
  /// The entries of all files.
  ///
  /// - Throws: ``ConfigurationError``, whose place is in the file in question.
  static func entries(
    in directory: String
  ) throws(ConfigurationError) -> [ConfigurationNode] {
    var names: [String]
    do { names = try FileManager.default.contentsOfDirectory(atPath: directory) } catch {
      var status = stat()
      let code = stat(directory, &status) == 0 ? EACCES : errno
      throw .unreadable(path: directory, reason: String(cString: strerror(code)).lowercased())
    }
    names = names.filter { name in
      !name.hasPrefix(".") && [".yaml", ".yml", ".json"].contains { name.hasSuffix($0) }
    }.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    var room = ServerConfiguration.maximumBytes
    var entries: [ConfigurationNode] = []
    for name in names {
      let path = ConfigurationSources.path(name, in: directory)
      let bytes: [UInt8]
      do throws(SmallFile.Failure) { bytes = try SmallFile.read(path, limit: room) } catch {
        switch error {
        case .unreadable(let reason): throw .unreadable(path: path, reason: reason)
        case .tooLarge: throw .tooLarge(limit: ServerConfiguration.maximumBytes)
        }
      }
      room -= bytes.count
      let section = try ConfigurationSection(
        try root(of: bytes, path), path: "", known: [Setting.keys.name])
      // An empty file may be one that somebody is writing.
      guard section.node(Setting.keys.name) != nil else {
        throw section.missing(Setting.keys.name, hint: "keys: [] is a list without entries")
      }
      entries += try section.list(Setting.keys.name)
    }
    return entries
  }

  private static func root(
    of bytes: [UInt8], _ path: String
  ) throws(ConfigurationError) -> ConfigurationNode {
    do throws(ConfigurationError) {
      return try YAMLDocument.root(of: bytes).moved(to: path)
    } catch {
      guard case .notYAML(let line, let reason) = error else { throw error }
      throw .invalid(
        key: Setting.keysDirectory.rawValue, at: .keysFile(path: path, line: line),
        reason: "not YAML: \(reason)", hint: nil)
    }
  }
}

extension ConfigurationNode {
  /// The node, with its place in another file than the configuration.
  fileprivate func moved(to path: String) -> ConfigurationNode {
    let placed: Content =
      switch content {
      case .scalar, .text: content
      case .sequence(let nodes): .sequence(nodes.map { $0.moved(to: path) })
      case .mapping(let members):
        .mapping(
          members.map {
            Member(
              key: $0.key, origin: $0.origin.moved(to: path), value: $0.value.moved(to: path))
          })
      }
    return ConfigurationNode(content: placed, origin: origin.moved(to: path))
  }
}

extension ConfigurationOrigin {
  fileprivate func moved(to path: String) -> ConfigurationOrigin {
    line.map { .keysFile(path: path, line: $0) } ?? self
  }
}
