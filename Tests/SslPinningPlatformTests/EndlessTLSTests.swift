import CSslPinningOpenSSL
import CSslPinningShims
import TLSTools
import Testing

@Suite("A server that sends messages without end")
struct EndlessTLSTests {
  /// Calls `body` with a client and a server of one connection, and what the client has to read.
  private func connected<R>(
    preparing prepare: (OpaquePointer?) -> Void,
    _ body: (_ client: OpaquePointer, _ server: OpaquePointer, _ down: OpaquePointer?) throws -> R
  ) throws -> R {
    let identity = try CertificateAuthority.makeRoot(name: "Root").issue(names: ["localhost"])
    let pair = try MemoryTLS(identity, client: prepare) { SSL_CTX_set_num_tickets($0, 10) }
    try #require(pair.shakes())
    return try withExtendedLifetime(pair) { try body(pair.client, pair.server, pair.down) }
  }

  /// How many bytes of ten session tickets are unread once a client has asked for data, of which there is none.
  private func unread(refusing: Bool) throws -> Int {
    try connected(preparing: refusing ? pp_tls_refuse_endless : { _ in }) { client, _, down in
      #expect(BIO_ctrl_pending(down) > 1000)
      var byte: UInt8 = 0
      let count = SSL_read(client, &byte, 1)
      #expect(SSL_get_error(client, count) == SSL_ERROR_WANT_READ)
      return BIO_ctrl_pending(down)
    }
  }

  @Test("is read to the end of them by OpenSSL alone")
  func control() throws { #expect(try unread(refusing: false) == 0) }

  @Test("is read one message at a time: in between, time-outs are looked at")
  func tickets() throws { #expect(try unread(refusing: true) > 1000) }

  /// How many bytes of a server's first message, cut into records of a byte with empty ones between, a client that
  /// shakes hands leaves unread.
  private func unreadOfRecords(preparing prepare: (OpaquePointer?) -> Void) throws -> Int {
    let context = SSL_CTX_new(TLS_client_method())
    defer { SSL_CTX_free(context) }
    prepare(context)
    let client = try #require(SSL_new(context))
    defer { SSL_free(client) }
    let (up, down) = (BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()))
    BIO_up_ref(down)
    defer { BIO_free(down) }
    SSL_set_bio(client, down, up)
    SSL_set_connect_state(client)
    // A ServerHello of 16 KB, of which a thousand bytes have come.
    let message: [UInt8] = [2, 0, 0x40, 0] + [UInt8](repeating: 0, count: 1000)
    let empty = [[UInt8]](repeating: [22, 3, 3, 0, 0], count: 8).flatMap { $0 }
    for byte in message {
      let bytes = empty + [22, 3, 3, 0, 1, byte]
      try #require(BIO_write(down, bytes, Int32(bytes.count)) == bytes.count)
    }
    SSL_do_handshake(client)
    return BIO_ctrl_pending(down)
  }

  @Test("is read to the end of a handshake's records by OpenSSL alone, however many they are")
  func recordsControl() throws { #expect(try unreadOfRecords { _ in } == 0) }

  @Test("is left once a handshake has more records than any needs")
  func records() throws {
    #expect(try unreadOfRecords(preparing: pp_tls_refuse_endless) > 10_000)
    #expect(try unreadOfRecords(preparing: pp_tls_read_in_turns) > 10_000)
  }

  @Test("ends its own connection alone: another one is read in the same turn")
  func neighbours() throws {
    try connected(preparing: pp_tls_read_in_turns) { flooded, flooding, _ in
      try connected(preparing: pp_tls_read_in_turns) { client, server, _ in
        pp_tls_begin_turn()
        var byte: UInt8 = 0
        func reads(_ client: OpaquePointer, _ server: OpaquePointer) -> Bool {
          guard SSL_write(server, &byte, 1) == 1 else { return false }
          return (0..<20).contains { _ in SSL_read(client, &byte, 1) == 1 }
        }
        #expect((0..<30_000).contains { _ in !reads(flooded, flooding) })
        #expect(reads(client, server))
      }
    }
  }

  @Test("is not read from for ever in one turn", arguments: [true, false])
  func turns(areMany: Bool) throws {
    let read = try connected(preparing: pp_tls_read_in_turns) { client, server, _ in
      pp_tls_begin_turn()
      var byte: UInt8 = 0
      // One of tickets is no data: it is asked for until there is some.
      return (0..<30_000).count { _ in
        if areMany { pp_tls_begin_turn() }
        guard SSL_write(server, &byte, 1) == 1 else { return false }
        return (0..<20).contains { _ in SSL_read(client, &byte, 1) == 1 }
      }
    }
    #expect(areMany ? read == 30_000 : (24_000..<25_000).contains(read))
  }

  /// Whether a client finishes a handshake of TLS 1.2 whose group of DHE the server chooses.
  private func shakes(
    in group: String, preparing prepare: (OpaquePointer?) -> Void
  ) throws -> Bool {
    let identity = try CertificateAuthority.makeRoot(name: "Root").issue(
      names: ["localhost"], algorithm: .rsa(bits: 2048))
    let making = EVP_PKEY_CTX_new_from_name(nil, "DH", nil)
    defer { EVP_PKEY_CTX_free(making) }
    try #require(EVP_PKEY_paramgen_init(making) == 1)
    var name = Array(group.utf8CString)
    try name.withUnsafeMutableBufferPointer { name in
      let parameters = [
        OSSL_PARAM_construct_utf8_string("group", name.baseAddress, 0), OSSL_PARAM_construct_end(),
      ]
      try #require(EVP_PKEY_CTX_set_params(making, parameters) == 1)
    }
    var field: OpaquePointer?
    try #require(EVP_PKEY_generate(making, &field) == 1)
    let pair = try MemoryTLS(identity, client: prepare) { context in
      SSL_CTX_set0_tmp_dh_pkey(context, field)
      SSL_CTX_set_cipher_list(context, "DHE-RSA-AES128-GCM-SHA256")
      SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(TLS1_2_VERSION), nil)
    }
    return pair.shakes()
  }

  @Test(
    "has no client pay a second for the group that it chose, as OpenSSL alone does",
    arguments: [("ffdhe8192", false), ("ffdhe4096", true)])
  func groups(name: String, isTaken: Bool) throws {
    #expect(try shakes(in: name) { _ in })
    for prepare in [pp_tls_refuse_endless, pp_tls_read_in_turns] {
      #expect(try shakes(in: name) { prepare($0) } == isTaken)
    }
  }
}
