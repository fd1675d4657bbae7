import RegistryServer

/// The configuration of the server, as its commands explain it.
enum ConfigurationHelp {
  /// The keys.
  static let keys = """
    the configuration, in YAML; all but keys have the defaults shown:

    \(ConfigurationReference.yaml.split(separator: "\n").map { "  \($0)" }.joined(separator: "\n"))

    A variable SSL_PINNING_ and a key, as in SSL_PINNING_TLS_DUMP_INTERVAL, wins over the file, and a
    flag over both. Lists are JSON: SSL_PINNING_KEYS='[{"fqdn": "www.example.com"}]'. With keys there,
    config.yaml need not exist. Paths are relative to the working directory. State is kept in
    $XDG_STATE_HOME/ssl-pinning, or in ~/.local/state/ssl-pinning, unless storage says where. The URL of
    a database is redis://user:password@host:6379/0 or postgres://user:password@host:5432/database.
    """
}
