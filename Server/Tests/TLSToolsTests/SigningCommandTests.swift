import Foundation
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

@testable import TLSTools

/// Every key is OpenSSL's, and every command a program that runs.
@Suite("A command that signs", .timeLimit(.minutes(2))) struct SigningCommandTests {
  private static let message = [UInt8](repeating: 0x61, count: 300_000)

  /// Both halves of a key, in files.
  private struct Pair {
    let folder: TemporaryDirectory
    let publicKey: TrustKey

    init(_ kind: TrustSigningKey.Kind) throws {
      folder = try TemporaryDirectory()
      let key = try TrustSigningKey.generate(kind)
      try key.write(to: folder.file("key.pem"))
      try key.writePublicKey(to: folder.file("key.pub"))
      publicKey = try TrustKey(key.publicKeyPEM)
    }

    /// The key behind a line for a shell, which a test may use where an operator should not.
    func key(
      _ line: String, _ input: SigningCommand.Input = .message, timeout: Int64 = 20_000
    ) throws -> TrustSigningKey {
      try TrustSigningKey(
        SigningCommand(
          ["sh", "-c", "cd '\(folder.path())'; \(line)"], input: input, timeout: timeout),
        publicKey: publicKey)
    }
  }

  private static let swap = """
    python3 -c 'import sys
    b = sys.stdin.buffer.read(); n = b[3]; r = b[4:4 + n]; s = b[6 + n:]
    sys.stdout.buffer.write(b"".join(int.from_bytes(x, "big").to_bytes(32, "big") for x in (r, s)))'
    """

  @Test(
    "signs, whatever it is given and however it writes what it made",
    arguments: [
      (.rsa(bits: 2048), .message, "openssl dgst -sha512 -sign key.pem"),
      (.rsa(bits: 2048), .message, "openssl dgst -sha512 -sign key.pem | base64"),
      (
        .rsa(bits: 2048), .digest,
        "openssl pkeyutl -sign -inkey key.pem -pkeyopt digest:sha512 -in /dev/stdin"
      ),
      (.p256, .message, "openssl dgst -sha256 -sign key.pem"),
      (.p256, .message, "openssl dgst -sha256 -sign key.pem | \(swap)"),
      (.p256, .digest, "openssl pkeyutl -sign -inkey key.pem | \(swap) | base64 -w 20"),
      // It asks how long its input is: that is a file, and no pipe.
      (.ed25519, .message, "openssl pkeyutl -sign -rawin -inkey key.pem -in /dev/stdin"),
    ] as [(TrustSigningKey.Kind, SigningCommand.Input, String)])
  func signs(kind: TrustSigningKey.Kind, input: SigningCommand.Input, line: String) throws {
    let pair = try Pair(kind)
    let key = try pair.key(line, input)
    for number in 0..<2 {
      let message = Self.message + [UInt8(number)]
      #expect(pair.publicKey.isValid(signature: try key.sign(message), over: message))
    }
    #expect(key.publicKeyDER == pair.publicKey.spkiDER)
  }

  @Test("two numbers side by side are DER for clients, with their zeros left out and put in front")
  func numbers() throws {
    let pair = try Pair(.p256)
    let key = try PrivateKey(pem: String(contentsOf: pair.folder.file("key.pem"), encoding: .utf8))
    var lengths: Set<Int> = []
    // Those with 70, 71 and 72 bytes come by chance, and by now all of them.
    for number in 0..<2000 where !lengths.isSuperset(of: [69, 70, 71, 72]) {
      let message = [UInt8]("\(number)".utf8)
      let der = try key.sign(message)
      lengths.insert(der.count)
      let r = Array(der[4..<(4 + Int(der[3]))].drop { $0 == 0 })
      let s = Array(der[(6 + Int(der[3]))...].drop { $0 == 0 })
      let pad = { (x: [UInt8]) in [UInt8](repeating: 0, count: 32 - x.count) + x }
      #expect(CommandKey.derOfNumbers(pad(r) + pad(s)) == der)
    }
  }

  /// A line, and what is said of it.
  private static let failures = [
    ("exit 3", "ended with 3"), ("kill -9 $$", "was ended by signal 9"),
    ("echo PIN wrong >&2; exit 1", "ended with 1, and said \"PIN wrong\""),
    ("true", "wrote no signature"), ("echo ready >&2", "wrote no signature, and said \"ready\""),
    ("openssl dgst -sha256 -sign key.pem", "is no signature by the public key"),
    ("openssl dgst -sha512 -sign other.pem", "is no signature by the public key"),
    ("openssl dgst -sha512 -sign key.pem | head -c 255", "is no signature by the public key"),
    ("(openssl dgst -sha512 -sign key.pem; echo)", "is no signature by the public key"),
    ("cat", "wrote more than 16384 bytes"), ("cat /dev/zero", "wrote more than 16384 bytes"),
    ("cat /dev/zero >&2", "did not end within 300 ms"),
    ("sleep 600", "did not end within 300 ms"),
    ("openssl dgst -sha512 -sign key.pem; sleep 600", "did not end within 300 ms"),
  ]

  @Test("a command that fails, lies, hangs or never ends makes no signature", arguments: failures)
  func fails(line: String, reason: String) throws {
    let pair = try Pair(.rsa(bits: 2048))
    try TrustSigningKey.generate(.rsa(bits: 2048)).write(to: pair.folder.file("other.pem"))
    let isTimed = reason.contains("300 ms")
    let key = try pair.key(line, timeout: isTimed ? 300 : 20_000)
    let error = #expect(throws: SigningKeyError.self) { try key.sign(Self.message) }
    let text = error.map { "\($0)" } ?? ""
    #expect(text.contains(reason), "\(text)")
    #expect(text.utf8.count < 600 && !text.contains("\n"))
  }

  @Test("a program that is not there is told")
  func absent() throws {
    let key = try TrustSigningKey(
      SigningCommand(["/nowhere/program"]), publicKey: Pair(.p256).publicKey)
    let error = #expect(throws: SigningKeyError.self) { try key.sign([]) }
    #expect(error.map { "\($0)" }?.contains("did not start: no such file") == true)
  }

  @Test("what hangs is killed with all that it started, and nobody else waits for it")
  func killed() async throws {
    let pair = try Pair(.p256)
    let key = try pair.key("sleep 600 & echo $! > one; wait", timeout: 500)
    #expect(throws: SigningKeyError.self) { try key.sign([]) }
    let text = try String(contentsOf: pair.folder.file("one"), encoding: .utf8)
    let process = text.trimmingCharacters(in: .whitespacesAndNewlines)
    try #require(!process.isEmpty)
    // Ended, and perhaps not taken note of by who inherited it.
    #expect(
      await eventually {
        let status = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
        return status?.contains(") Z ") ?? true
      })
    // The next one is not run, and told the same.
    try FileManager.default.removeItem(at: pair.folder.file("one"))
    let error = #expect(throws: SigningKeyError.self) { try key.sign([]) }
    #expect(error.map { "\($0)" }?.contains("did not end") == true)
    #expect(!FileManager.default.fileExists(atPath: pair.folder.path("one")))
  }

  @Test("it is run again once it was left alone for a while")
  func again() async throws {
    let pair = try Pair(.p256)
    let key = try pair.key("[ -f ready ] && openssl dgst -sha256 -sign key.pem", timeout: 3000)
    #expect(throws: SigningKeyError.self) { try key.sign([1]) }
    try pair.folder.write("", to: "ready")
    #expect(await eventually { (try? key.sign([1])) != nil })
  }

  @Test("what it leaves behind with its output open is not waited for")
  func leftBehind() throws {
    let pair = try Pair(.p256)
    // Waited for, it would last longer than this test may.
    let key = try pair.key("sleep 600 & openssl dgst -sha256 -sign key.pem", timeout: 600_000)
    #expect(pair.publicKey.isValid(signature: try key.sign([1]), over: [1]))
  }

  @Test("one process at a time signs with a key")
  func oneAtATime() async throws {
    let pair = try Pair(.p256)
    let key = try pair.key("mkdir busy || exit 9; openssl dgst -sha256 -sign key.pem; rmdir busy")
    await withTaskGroup(of: Bool.self) { group in
      for number in 0..<8 {
        group.addTask {
          await withCheckedContinuation { continuation in
            Thread.detachNewThread {
              continuation.resume(returning: (try? key.sign([UInt8(number)])) != nil)
            }
          }
        }
      }
      for await isSigned in group { #expect(isSigned) }
    }
  }

  @Test(
    "it sees nothing of the server: neither its files nor its configuration, and no blocked signal")
  func surroundings() async throws {
    let pair = try Pair(.p256)
    setenv("SSL_PINNING_SERVER_KEY", "a secret of the server", 1)
    defer { unsetenv("SSL_PINNING_SERVER_KEY") }
    let key = try pair.key(
      "env > env; ls /proc/self/fd > fds; grep SigBlk /proc/self/status > signals;"
        + " openssl dgst -sha256 -sign key.pem")
    let open = try #require(fopen("/etc/hosts", "r"))
    defer { fclose(open) }
    _ = try key.sign([1])
    let text = { try String(contentsOf: pair.folder.file($0), encoding: .utf8) }
    #expect(try !text("env").contains("SSL_PINNING_"))
    #expect(try text("env").contains("PATH="))
    // 3 is the directory that ls reads.
    #expect(try text("fds").split(separator: "\n").count <= 4)
    #expect(try text("signals").contains("0000000000000000"))
  }

  @Test("what could never sign is refused before it is run")
  func impossible() throws {
    let ed25519 = try Pair(.ed25519).publicKey
    #expect(throws: SigningKeyError.command(.digestOfEd25519)) {
      try TrustSigningKey(SigningCommand(["true"], input: .digest), publicKey: ed25519)
    }
    #expect(throws: SigningKeyError.command(.noProgram)) {
      try TrustSigningKey(SigningCommand([]), publicKey: ed25519)
    }
    let key = try TrustSigningKey(SigningCommand(["true"]), publicKey: ed25519)
    let folder = try TemporaryDirectory()
    #expect(throws: SigningKeyError.self) { try key.write(to: folder.file("key.pem")) }
  }

  /// The members of a file, and whether it is one that names a command.
  private static let files = [
    ("\"command\": [\"true\"], \"public_key\": \"KEY\"", true),
    (
      "\"command\": [\"true\"], \"public_key\": \"KEY\", \"input\": \"digest\", \"timeout\": 60",
      true
    ),
    ("\"command\": \"true\", \"public_key\": \"KEY\"", false),
    ("\"command\": [\"true\", 1], \"public_key\": \"KEY\"", false),
    ("\"command\": [], \"public_key\": \"KEY\"", false), ("\"command\": [\"true\"]", false),
    ("\"command\": [\"true\"], \"public_key\": \"/nowhere\"", false),
    ("\"command\": [\"true\"], \"public_key\": \"KEY\", \"input\": \"hash\"", false),
    ("\"command\": [\"true\"], \"public_key\": \"KEY\", \"timeout\": 61", false),
    ("\"command\": [\"true\"], \"public_key\": \"KEY\", \"shell\": true", false),
  ]

  @Test("a file names a command in place of a key", arguments: files)
  func file(members: String, isOne: Bool) throws {
    let pair = try Pair(.p256)
    let path = pair.folder.path("key.json")
    try pair.folder.write(
      "{\(members.replacing("KEY", with: pair.folder.path("key.pub")))}", to: "key.json")
    #expect((try? TrustSigningKey(named: path))?.isHeldByCommand ?? false == isOne)
    // Only where somebody named the file: one that lies among keys runs nothing.
    #expect(throws: SigningKeyError.noKey) {
      try TrustSigningKey(file: pair.folder.file("key.json"))
    }
  }

  @Test("a file that others can write names no command")
  func others() throws {
    let pair = try Pair(.p256)
    let path = pair.folder.path("key.json")
    try pair.folder.write(
      "{\"command\": [\"true\"], \"public_key\": \"\(pair.folder.path("key.pub"))\"}",
      to: "key.json")
    for (mode, isTaken) in [(0o600, true), (0o644, true), (0o664, false), (0o602, false)] {
      chmod(path, mode_t(mode))
      #expect(((try? TrustSigningKey(named: path)) != nil) == isTaken)
    }
  }
}
