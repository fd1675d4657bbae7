// Names that this project's rules have as well: an app that imports both modules must be able to use them.

public struct Statement { public init() {} }
public struct Registry { public init() {} }
public struct KeySet { public init() {} }
public struct HostName { public init() {} }
public protocol IPAddress {}
