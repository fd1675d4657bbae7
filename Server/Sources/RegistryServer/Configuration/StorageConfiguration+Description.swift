extension StorageConfiguration: CustomStringConvertible, CustomDebugStringConvertible,
  CustomReflectable
{
  /// The type and its place, a password masked: a whole configuration that ends up in a message takes
  /// none with it.
  public var description: String {
    switch self {
    case .memory: "memory"
    case .sqlite(let path): "sqlite(\(path))"
    case .fileSystem(let directory): "fs(\(directory))"
    case .postgres(let dsn, _, _): "postgres(\(MaskedDSN(dsn)))"
    case .redis(let dsn, _, _): "redis(\(MaskedDSN(dsn)))"
    }
  }

  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}
