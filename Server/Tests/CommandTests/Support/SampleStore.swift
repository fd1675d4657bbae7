import Foundation
import TestSupport

/// The database that a sample configuration finds where it looks for it.
enum SampleStore {
  case none
  case directory
  /// Redis with the sample's user in its ACL, and no other.
  case redisWithUser
  /// Redis with the sample's password and no user of that name: the reference server never sends one.
  case redisWithPassword
  case postgres(user: String, password: String, database: String)

  /// Whether what it keeps outlives the server.
  var isDurable: Bool { if case .none = self { false } else { true } }

  /// Starts it, with what the reference server may have left there.
  func start(on machine: PrivateMachine) async throws {
    switch self {
    case .none: break
    case .directory:
      let left = Vectors.root.appending(path: "interop/rsa3072/two-keys.json").path()
      try await Self.succeed(
        "install", ["-D", "-m", "600", left, "/var/lib/ssl-pinning/dumps/example.com.json"], machine
      )
    case .redisWithUser:
      try await Self.startRedis("user default off\nuser user on >password ~* &* +@all", machine)
    case .redisWithPassword: try await Self.startRedis("requirepass password", machine)
    case .postgres(let user, let password, let database):
      try machine.directory.write(Self.postgres, to: "postgres.sh")
      let started = try machine.start("bash", ["postgres.sh", user, password, database])
      try await started.waitForOutput(containing: "the database is made")
    }
  }

  private static func startRedis(_ access: String, _ machine: PrivateMachine) async throws {
    try machine.directory.write(
      "port 6379\nbind 127.0.0.1\ndir \(machine.disk)\nsave \"\"\nappendonly yes\n\(access)\n",
      to: "redis.conf")
    let started = try machine.start("redis-server", ["redis.conf"])
    try await started.waitForOutput(containing: "Ready to accept connections")
    let login = access.contains("user user") ? ["--user", "user"] : []
    let left = ["HSET", "example.com.json:example.com:8a6e0804", "fqdn", "example.com", "key", "x"]
    try await succeed("redis-cli", login + ["--pass", "password"] + left, machine)
  }

  private static func succeed(
    _ program: String, _ arguments: [String], _ machine: PrivateMachine
  ) async throws {
    let end = try await machine.run(program, arguments)
    guard end.exitCode == 0 else { throw ChildProcess.Failure.ended(program: program, end) }
  }

  /// PostgreSQL runs as no root, also where root is nobody outside.
  private static let postgres = """
    set -euo pipefail
    PATH=$(printf '%s\\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1):$PATH
    if setpriv --reuid=postgres true 2>/dev/null; then
      owner=(setpriv --reuid=postgres --regid=postgres --clear-groups --)
    else
      owner=(unshare --user --map-user=1000 --map-group=1000 --)
    fi
    "${owner[@]}" initdb -D disk/postgres -U admin -A trust --no-sync --locale=C -E UTF8 >/dev/null
    echo 'host all all all scram-sha-256' >disk/postgres/pg_hba.conf
    echo 'local all admin trust' >>disk/postgres/pg_hba.conf
    settings=(-c listen_addresses=localhost -c port=5432 -c "unix_socket_directories=$PWD/disk")
    "${owner[@]}" postgres -D "$PWD/disk/postgres" "${settings[@]}" &
    until pg_isready -q -h "$PWD/disk"; do sleep 0.05; done
    psql -X -q -v ON_ERROR_STOP=1 -h "$PWD/disk" -U admin -d postgres \\
      -c "CREATE ROLE \\"$1\\" LOGIN PASSWORD '$2'" -c "CREATE DATABASE \\"$3\\" OWNER \\"$1\\""
    PGPASSWORD=$2 psql -X -q -v ON_ERROR_STOP=1 -h localhost -U "$1" -d "$3" \\
      -c 'CREATE TABLE domain_keys (fqdn TEXT, key TEXT)' -c "INSERT INTO domain_keys VALUES ('example.com', 'x')"
    echo the database is made
    wait
    """
}
