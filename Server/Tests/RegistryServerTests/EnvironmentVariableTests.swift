import RegistryServer
import TestSupport
import Testing

@Suite("Environment variables") struct EnvironmentVariableTests {
  /// Variables, and what the refusal has to say.
  static let refusedVariables: [([String: String], String)] = [
    (
      ["SSL_PINNING_STROAGE_TYPE": "fs"],
      "SSL_PINNING_STROAGE_TYPE: unknown variable; hint: did you mean SSL_PINNING_STORAGE_TYPE?"
    ),
    (["SSL_PINNING_LISTEN": ":1"], "did you mean SSL_PINNING_SERVER_LISTEN?"),
    (["SSL_PINNING_LOGLEVEL": "info"], "did you mean SSL_PINNING_LOG_LEVEL?"),
    (["SSL_PINNING_CONFIG_PATH": "/etc"], "hint: the names are SSL_PINNING_ and a key, as in"),
    (["SSL_PINNING_": "x"], "unknown variable"),
    (["SSL_PINNING_PORT": "7500"], "SSL_PINNING_PORT: unknown variable"),
    (["SSL_PINNING_PORT_7500": "x"], "unknown variable"),
    (["SSL_PINNING_PORT_7500_TCP_HOST": "x"], "unknown variable"),
    (["SSL_PINNING_PORT_X_TCP": "x"], "unknown variable"),
    (["SSL_PINNING_SERVICE": "x"], "unknown variable"),
    (["SSL_PINNING_SERVICE_NAME": "x"], "unknown variable"),
    (
      ["SSL_PINNING_LOG_LEVEL": "loud"],
      "SSL_PINNING_LOG_LEVEL: log.level: no such level: \"loud\"; hint: debug, info, warn, error"
    ),
    (["SSL_PINNING_LOG_PRETTY": "yes"], "log.pretty is a string; hint: true or false is expected"),
    (["SSL_PINNING_TLS_TIMEOUT": "5"], "tls.timeout: \"5\" is no duration; hint: write 60s"),
    (["SSL_PINNING_STORAGE_MAX_OPEN_CONNS": "5.5"], "a whole number is expected"),
    (["SSL_PINNING_SERVER_LISTEN": "7500"], "SSL_PINNING_SERVER_LISTEN: server.listen: \"7500\""),
    (["SSL_PINNING_STORAGE_TYPE": "redis"], "storage.dsn is missing"),
    (["SSL_PINNING_KEYS": "a.b"], "SSL_PINNING_KEYS: not JSON: "),
    (["SSL_PINNING_KEYS": "a.b"], "hint: write a list"),
    (["SSL_PINNING_KEYS": "{}"], "SSL_PINNING_KEYS: keys is a mapping; hint: a list is expected"),
    (["SSL_PINNING_KEYS": "[]"], "keys is missing"),
    (
      ["SSL_PINNING_KEYS": "[{\"fqdn\": \"a.b\", \"fqdn\": \"c.d\"}]"], "SSL_PINNING_KEYS: not JSON"
    ),
    (["SSL_PINNING_KEYS": "[{\"fqdn\": \"a.b\", \"Fqdn\": \"c.d\"}]"], "keys[0].Fqdn stands twice"),
    (["SSL_PINNING_KEYS": "[{\"fqdn\": 1}]"], "SSL_PINNING_KEYS: keys[0].fqdn is a number"),
    (
      ["SSL_PINNING_KEYS": "[{\"fqdn\": \"a.b\", \"prot\": 1}]"],
      "SSL_PINNING_KEYS: unknown key keys[0].prot; hint: did you mean port?"
    ),
    (["SSL_PINNING_TLS_VANTAGE_POINTS": "x"], "SSL_PINNING_TLS_VANTAGE_POINTS: not JSON"),
    (["SSL_PINNING_PUBLISH_ONLINE_KEYS": "a.pem"], "SSL_PINNING_PUBLISH_ONLINE_KEYS: not JSON"),
  ]

  @Test("a variable that is wrong is named, with a hint", arguments: refusedVariables)
  func refusedVariable(_ environment: [String: String], _ message: String) throws {
    let directory = try TemporaryDirectory()
    try directory.write("keys: [{fqdn: a.b}]", to: "config.yaml")
    let sources = ConfigurationSources(directory: directory.path(), environment: environment)
    let error = #expect(throws: ConfigurationError.self) { try sources.read() }
    #expect(error?.description.contains(message) == true, "\(error?.description ?? "")")
    #expect(error?.description(file: "f").hasPrefix("f: ") == false)
  }

  /// What Kubernetes sets for services of these names, and what apps' builds use.
  static let foreign: [String: String] = [
    "SSL_PINNING_SERVICE_HOST": "10.0.0.11", "SSL_PINNING_SERVICE_PORT": "7500",
    "SSL_PINNING_SERVICE_PORT_HTTP_METRICS": "9090", "SSL_PINNING_PORT": "tcp://10.0.0.11:7500",
    "SSL_PINNING_PORT_7500_TCP": "tcp://10.0.0.11:7500", "SSL_PINNING_PORT_7500_TCP_PROTO": "tcp",
    "SSL_PINNING_PORT_7500_TCP_PORT": "7500", "SSL_PINNING_PORT_7500_TCP_ADDR": "10.0.0.11",
    "SSL_PINNING_PORT_53_UDP_ADDR": "10.0.0.11", "SSL_PINNING_REDIS_SERVICE_HOST": "10.0.0.12",
    "SSL_PINNING_REDIS_PORT": "tcp://10.0.0.12:6379",
    "SSL_PINNING_REDIS_PORT_6379_TCP_ADDR": "10.0.0.12",
    "SSL_PINNING_ENDPOINT": "https://r.example/a.json", "SSL_PINNING_SIGNING_KEY_B64": "MIIB",
    // Empty is as good as none, whatever the name.
    "SSL_PINNING_VERSION": "", "ssl_pinning_log_level": "loud", "SSLPINNING_LOG_LEVEL": "loud",
  ]

  @Test("variables that others set are none of ours", arguments: foreign.keys.sorted())
  func foreignVariable(_ name: String) throws {
    let directory = try TemporaryDirectory()
    try directory.write("keys: [{fqdn: a.b}]", to: "config.yaml")
    let sources = ConfigurationSources(
      directory: directory.path(), environment: [name: try #require(Self.foreign[name])])
    #expect(try sources.effective().values.allSatisfy { $0.origin.description != name })
  }
}
