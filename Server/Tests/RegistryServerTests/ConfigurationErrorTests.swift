import RegistryServer
import Testing

@Suite("A configuration that is wrong") struct ConfigurationErrorTests {
  /// YAML, and what the refusal has to say.
  static let refused: [(String, String)] = [
    ("", "keys is missing"),
    ("keys: []", "keys is missing"),
    ("kyes: []", "line 1: unknown key kyes; hint: did you mean keys?"),
    (
      "keys: [{fqdn: a.b}]\ngui: {token_ttl: 1h}", "line 2: unknown key gui; hint: did you mean ui?"
    ),
    (
      "keys:\n - fqdn: a.b\n   domain_name: c",
      "line 3: unknown key keys[0].domain_name; hint: did you mean domainName?"
    ),
    ("keys:\n - fqdn: a.b\n   FQDN: c", "line 3: keys[0].FQDN stands twice"),
    ("\u{212a}eys: [{fqdn: a.b}]", "unknown key"),
    (
      "keys: [{fqdn: a.b}]\ntls:\n  dir: x\n  dir: y",
      "line 4: tls.dir stands twice; hint: it was first set on line 3"
    ),
    ("keys: [{fqdn: a.b}]\nkeys: [{fqdn: c.d}]", "line 2: keys stands twice"),
    ("keys: {fqdn: a.b}", "line 1: keys is a mapping; hint: a list is expected"),
    ("keys: [a.b]", "keys[0] is a string; hint: a mapping is expected"),
    ("keys: [{fqdn: [a.b]}]", "keys[0].fqdn is a list; hint: a string is expected"),
    ("keys: [{fqdn: 12}]", "keys[0].fqdn is a number; hint: a string is expected"),
    ("keys: [{fqdn: true}]", "keys[0].fqdn is a boolean"),
    ("keys: [{fqdn: ''}]", "keys[0].fqdn: it is empty"),
    ("keys: [{fqdn: }]", "keys[0].fqdn is missing"),
    ("keys: [{domainName: a.b}]", "keys[0].fqdn is missing"),
    ("keys: [{fqdn: '*.a.b'}]", "keys[0].fqdn: "),
    ("keys: [{fqdn: 'bücher.example'}]", "xn--"),
    ("keys: [{fqdn: 'a b'}]", "keys[0].fqdn: "),
    ("keys: [{fqdn: a.b, domainName: 'a.*.b'}]", "keys[0].domainName: "),
    ("keys: [{fqdn: a.b, file: ../x.json}]", "keys[0].file: \"../x.json\" cannot be a file name"),
    ("keys: [{fqdn: a.b, file: .x}]", "cannot be a file name"),
    ("keys: [{fqdn: a.b, file: reports}]", "keys[0].file: \"reports\" is something else here"),
    ("keys: [{fqdn: a.b, file: Admin}]", "\"Admin\" is something else here"),
    ("keys: [{fqdn: a.b, file: a.json.gz}]", "\"a.json.gz\" is something else here"),
    ("keys: [{fqdn: a.b, file: a.json.parts}]", "\"a.json.parts\" is something else here"),
    ("keys: [{fqdn: a.b, file: '..'}]", "cannot be a file name"),
    ("keys: [{fqdn: a.b, file: a/b}]", "cannot be a file name"),
    ("keys: [{fqdn: a.b, file: 'a\\b'}]", "cannot be a file name"),
    ("keys: [{fqdn: a.b, file: \"a\\tb\"}]", "cannot be a file name"),
    ("keys: [{fqdn: a.b, file: \"a\\0b\"}]", "NUL"),
    ("keys: [{fqdn: '::1'}]", "keys[0].fqdn: \"::1.json\" cannot be a file name"),
    ("keys: [{fqdn: a.b, port: 0}]", "keys[0].port: 0 is not within 1 to 65535"),
    ("keys: [{fqdn: a.b, port: 65536}]", "not within"),
    ("keys: [{fqdn: a.b, port: 'https'}]", "keys[0].port is a string; hint: a whole number"),
    ("keys: [{fqdn: a.b, port: '+443'}]", "a whole number"),
    ("keys: [{fqdn: a.b, port: 1.5}]", "a whole number"),
    ("keys: [{fqdn: a.b, address: localhost}]", "\"localhost\" is no IP address"),
    ("keys: [{fqdn: a.b}, {fqdn: A.B}]", "keys[1].fqdn: a.b of a.b:443 stands twice in a.b.json"),
    ("keys: [{fqdn: a.b}]\nserver: {listen: a.b:7500}", "server.listen: \"a.b:7500\""),
    ("keys: [{fqdn: a.b}]\nserver: {listen: '127.0.0.1'}", "no address and port"),
    ("keys: [{fqdn: a.b}]\nserver: {listen: '127.0.0.1:99999'}", "no address and port"),
    ("keys: [{fqdn: a.b}]\nserver: {listen: '::1:80'}", "no address and port"),
    ("keys: [{fqdn: a.b}]\nserver: {listen: '127.0.0.1:+80'}", "no address and port"),
    ("keys: [{fqdn: a.b}]\nserver: 7500", "server is a number; hint: a mapping is expected"),
    (
      "keys: [{fqdn: a.b}]\nserver: {trusted_proxies: [proxy]}",
      "\"proxy\" is no address and no network; hint: write 192.0.2.7"
    ),
    (
      "keys: [{fqdn: a.b}]\nserver: {trusted_proxies: [10.1.2.3/8]}",
      "hint: the network is 10.0.0.0/8"
    ),
    (
      "keys: [{fqdn: a.b}]\nserver: {trusted_proxies: ['0.0.0.0/1', '128.0.0.0/1']}",
      "is every address, or nearly"
    ),
    (
      "keys: [{fqdn: a.b}]\nserver: {trusted_proxies: ['::/0']}",
      "is every address, or nearly: any caller could name another one"
    ),
    (
      "keys: [{fqdn: a.b}]\nserver: {listen: '127.0.0.1:1'}\nmetrics: {listen: '127.0.0.1:1'}",
      "metrics.listen: 127.0.0.1:1 is server.listen, too; hint: another port"
    ),
    (
      "keys: [{fqdn: a.b}]\nserver: {listen: '127.0.0.1:7500'}\nmetrics: {listen: ':7500'}",
      "[::]:7500 and server.listen (127.0.0.1:7500) cannot be had together; hint: another port"
    ),
    (
      "keys: [{fqdn: a.b}]\nserver: {listen: '127.0.0.1:7500'}\nmetrics: {listen: '0.0.0.0:7500'}",
      "cannot be had together"
    ),
    (
      "keys: [{fqdn: a.b}]\nserver: {listen: '0.0.0.0:7500'}\nmetrics: {listen: '127.0.0.2:7500'}",
      "cannot be had together"
    ),
    ("keys: [{fqdn: a.b}]\nmetrics: {listen: here}", "metrics.listen: \"here\" is no address"),
    ("keys: [{fqdn: a.b}]\nserver: {port: 7500}", "unknown key server.port"),
    ("keys: [{fqdn: a.b}]\nstorage: {type: mongo}", "no such storage: \"mongo\"; hint: sqlite"),
    ("keys: [{fqdn: a.b}]\nstorage: {type: Memory}", "no such storage: \"Memory\""),
    (
      "keys: [{fqdn: a.b}]\nstorage: {type: sqlite, dsn: 'redis://u:hush@h'}",
      "\"redis://u:***@h\" is no"
    ),
    (
      "keys: [{fqdn: a.b}]\nstorage: {type: redis}",
      "line 2: storage.dsn is missing; hint: write redis://"
    ),
    (
      "keys: [{fqdn: a.b}]\nstorage: {type: postgres, dsn: ''}",
      "storage.dsn is missing; hint: write pos"
    ),
    (
      "keys: [{fqdn: a.b}]\nstorage:\n  type: redis\n  dsn: postgres://u:hush@h/d",
      "line 4: storage.dsn: \"postgres://u:***@h/d\" is none of redis; hint: write redis://"
    ),
    (
      "keys: [{fqdn: a.b}]\nstorage: {type: postgres, dsn: hush}",
      "storage.dsn: what stands there is none of postgres"
    ),
    (
      "keys: [{fqdn: a.b}]\nstorage: {type: redis, dsn: 'hush@h:6379'}",
      "storage.dsn: what stands there is none of redis"
    ),
    (
      "keys: [{fqdn: a.b}]\nstorage:\n  type: redis\n  dsn: redis://u:hush@h",
      "line 4: storage.dsn: names a Redis on another machine, h, in clear text; hint: write rediss://"
    ),
    (
      "keys: [{fqdn: a.b}]\nstorage:\n  type: postgres\n  dsn: postgres://u:hush@h/d",
      "line 4: storage.dsn: names a database on another machine, h, without verified TLS"
        + " (sslmode=prefer); hint: write sslmode=verify-full, and sslrootcert=FILE; or set"
    ),
    (
      "keys: [{fqdn: a.b}]\nstorage: {type: redis, dsn: 'redis://h', insecure: perhaps}",
      "storage.insecure"
    ),
    ("keys: [{fqdn: a.b}]\nstorage: {type: fs, dump_dir: [a]}", "storage.dump_dir is a list"),
    ("keys: [{fqdn: a.b}]\nstorage: {max_open_conns: -1}", "not within 0 to 10000"),
    ("keys: [{fqdn: a.b}]\nstorage: {max_idle_conns: many}", "a whole number is expected"),
    ("keys: [{fqdn: a.b}]\nstorage: {conn_max_lifetime: 30}", "\"30\" is no duration"),
    ("keys: [{fqdn: a.b}]\nstorage: {dump_interval: soon}", "storage.dump_interval: \"soon\""),
    ("keys: [{fqdn: a.b}]\nserver: {read_timeout: 5}", "server.read_timeout: \"5\" is no duration"),
    ("keys: [{fqdn: a.b}]\nserver: {key: [a]}", "server.key is a list; hint: a string"),
    (
      "keys: [{fqdn: a.b}]\nserver: {certificate: c.pem}",
      "server.private_key is missing; hint: name"
    ),
    (
      "keys: [{fqdn: a.b}]\nserver: {private_key: k.pem}",
      "server.certificate is missing; hint: name"
    ),
    ("keys: [{fqdn: a.b}]\nlog: {pretty: yes}", "log.pretty is a string; hint: true or false"),
    ("keys: [{fqdn: a.b}]\nui: {enabled: 2}", "ui.enabled is a number; hint: true or false"),
    (
      "keys: [{fqdn: a.b}]\nui: {revoked_tokens: [AAAAAAAAAAAA, abc]}",
      "ui.revoked_tokens[1]: this is no id of a token; hint: 12 characters"
    ),
    (
      "keys: [{fqdn: a.b}]\nui: {revoked_tokens: [a.b.c]}",
      "ui.revoked_tokens[0]: this is no id, but a token itself; hint: its id is hF4wRIgJ4ryJ"
    ),
    ("keys: [{fqdn: a.b}]\nui: {token_ttl: 0s}", "ui.token_ttl: 0s is not within 1s"),
    ("keys: [{fqdn: a.b}]\nreports: {max_groups: 0}", "reports.max_groups: 0 is not within 1 to"),
    ("keys: [{fqdn: a.b}]\npublish: {statements: {}}", "publish.statements is a mapping"),
    ("keys: [{fqdn: a.b}]\npublish: {online_keys: a.pem}", "is a string; hint: a list is expected"),
    ("keys: [{fqdn: a.b}]\npublish: {online_keys: [a, '']}", "publish.online_keys[1] is a string"),
    ("keys: [{fqdn: a.b}]\npublish: {online_keys: [[a]]}", "publish.online_keys[0] is a list"),
    (
      "keys: [{fqdn: a.b}]\npublish: {mirrors: [http://m.example/]}",
      "publish.mirrors: \"http://m.example/\" is no place that clients could ask; hint: write https://"
    ),
    ("keys: [{fqdn: a.b}]\npublish: {mirrors: ['https://u@m.example/']}", "is no place"),
    ("keys: [{fqdn: a.b}]\npublish: {mirrors: ['https://m.example/?x']}", "is no place"),
    (
      "keys: [{fqdn: a.b}]\npublish: {mirrors: ['https://m.example/', 'https://m.example']}",
      "\"https://m.example\" stands twice"
    ),
    (
      "keys: [{fqdn: a.b}]\npublish: {mirrors: [a, b, c, d, e, f, g, h, i]}",
      "9 are more than a statement may name; hint: 8 at most"
    ),
    (
      "keys: [{fqdn: a.b}]\ntls: {approval: maybe}",
      "no such approval: \"maybe\"; hint: auto, manual"
    ),
    (
      "keys: [{fqdn: a.b}]\ntls: {addresses: last}", "no such selection: \"last\"; hint: all, first"
    ),
    ("keys: [{fqdn: a.b, approval: never}]", "keys[0].approval: no such approval"),
    ("keys: [{fqdn: a.b, interval: 0s}]", "keys[0].interval: 0s is not within 1ms to 24h"),
    (
      "keys: [{fqdn: a.b, interval: 1s, domainName: a.b}, {fqdn: a.b, interval: 2s, domainName: c.d, file: a.b.json}]",
      "keys[1].interval: a.b:443 has another one above"
    ),
    (
      "keys: [{fqdn: a.b, approval: auto, domainName: a.b}, {fqdn: a.b, approval: manual, domainName: c.d, file: a.b.json}]",
      "keys[1].approval: a.b:443 has another one above"
    ),
    ("keys: [{fqdn: a.b}]\ntls: {vantage_points: {}}", "tls.vantage_points is a mapping"),
    ("keys: [{fqdn: a.b}]\ntls: {vantage_points: [{proxy: 'http://h:1'}]}", "[0].name is missing"),
    (
      "keys: [{fqdn: a.b}]\ntls: {vantage_points: [{name: x}]}",
      "vantage_points[0].proxy is missing"
    ),
    (
      "keys: [{fqdn: a.b}]\ntls: {vantage_points: [{name: direct, proxy: 'http://h:1'}]}",
      "tls.vantage_points[0].name: \"direct\" is taken"
    ),
    (
      "keys: [{fqdn: a.b}]\ntls: {vantage_points: [{name: x, proxy: 'http://localhost:1'}, {name: x, proxy: 'http://[::1]:1'}]}",
      "tls.vantage_points[1].name: \"x\" is taken"
    ),
    // One machine, or one key, is one voice.
    (
      "keys: [{fqdn: a.b}]\ntls: {vantage_points: [{name: x, proxy: 'http://localhost:1'}, {name: y, proxy: 'http://localhost:1/'}]}",
      "tls.vantage_points[1].proxy: it is x under another name"
    ),
    (
      "keys: [{fqdn: a.b}]\ntls: {vantage_points: [{name: x, proxy: 'http://localhost:1'}, {name: y, proxy: 'http://127.0.0.1:1'}]}",
      "tls.vantage_points[1].proxy: it is x under another name"
    ),
    (
      "keys: [{fqdn: a.b}]\ntls: {vantage_points: [{name: x, proxy: 'http://[::1]:1'}, {name: y, proxy: 'http://127.0.0.2:1'}]}",
      "tls.vantage_points[1].proxy: it is x under another name"
    ),
    (
      "keys: [{fqdn: a.b}]\ntls: {vantage_points: [{name: x, proxy: 'https://h:1', pins: [AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=]}, {name: y, proxy: 'https://i:1', pins: [AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=]}]}",
      "tls.vantage_points[1].proxy: it is x under another name"
    ),
    (
      "keys: [{fqdn: a.b}]\ntls:\n  vantage_points:\n    - name: x\n      proxy: http://u:hush@h:1",
      "line 5: tls.vantage_points[0].proxy: \"http://u:***@h:1\" is no proxy; hint: write https://host:port"
    ),
    (
      "keys: [{fqdn: a.b}]\ntls: {vantage_points: [{name: x, proxy: 'http://h:1'}]}",
      "[0].proxy: \"http://h:1\" is clear text to another machine; hint: write https:// with pins"
    ),
    (
      "keys: [{fqdn: a.b}]\ntls: {vantage_points: [{name: x, proxy: 'http://10.0.0.1:1'}]}",
      "is clear text to another machine"
    ),
    (
      "keys: [{fqdn: a.b}]\ntls: {vantage_points: [{name: x, proxy: 'http://127.0.0.1:1', ca: a.pem}]}",
      "proves nothing: it is clear text; hint: write https://"
    ),
    (
      "keys: [{fqdn: a.b}]\ntls: {vantage_points: [{name: x, proxy: 'https://h:1'}]}",
      "vantage_points[0].pins is missing"
    ),
    (
      "keys: [{fqdn: a.b}]\ntls: {vantage_points: [{name: x, proxy: 'https://h:1', ca: a.pem}]}",
      "vantage_points[0].pins is missing"
    ),
    (
      "keys: [{fqdn: a.b}]\ntls: {vantage_points: [{name: x, proxy: 'https://h:1', pins: [abc]}]}",
      "vantage_points[0].pins: \"abc\" is no pin"
    ),
    (
      "keys: [{fqdn: a.b}]\ntls: {vantage_points: [{name: x, proxy: 'https://h:1', certificate: c.pem}]}",
      "vantage_points[0].key is missing"
    ),
    (
      "keys: [{fqdn: a.b}]\ntls: {vantage_points: [{name: x, proxy: 'https://h:1', key: c.pem}]}",
      "vantage_points[0].certificate is missing"
    ),
    ("keys: [{fqdn: a.b}]\nstorage: {dsn: ':memory:'}", "is no file"),
    ("keys: [{fqdn: a.b}]\nstorage: {dsn: 'postgres:/u:hush@h/d'}", "\"***@h/d\" is no file"),
    (
      "keys: [{fqdn: a.b}]\nstorage: {dsn: 'host=h pasword=hush'}",
      "\"host=h pasword=***\" is no file"
    ),
    (
      "keys: [{fqdn: a.b}]\ntls: {dir: tls}\npublish: {dir: ./tls/x/../keysets/}",
      "copies of documents would take their place"
    ),
    (
      "keys: [{fqdn: a.b}]\npublish: {dir: sets, key_sets: sets}",
      "copies of documents would take their place"
    ),
    (
      "keys: [{fqdn: a.b}]\ntls: {dump_interval: 60}",
      "tls.dump_interval: \"60\" is no duration; hint: write 60s"
    ),
    ("keys: [{fqdn: a.b}]\ntls: {dump_interval: -1m}", "is no duration"),
    ("keys: [{fqdn: a.b}]\ntls: {dump_interval: 0s}", "not within 1ms to 24h"),
    ("keys: [{fqdn: a.b}]\ntls: {timeout: [1s]}", "tls.timeout is a list; hint: a duration"),
    ("keys: [{fqdn: a.b}]\ntls: {confirmations: 0}", "not within 1 to 100"),
    (
      "keys: [{fqdn: a.b}]\nui: {revoked_tokens: [q83vEjRWeJCr, alice]}",
      "ui.revoked_tokens[1]: this is no id of a token"
    ),
    ("keys: [{fqdn: a.b}]\nlog: {levle: info}", "unknown key log.levle; hint: did you mean level?"),
    ("keys: [{fqdn: a.b}]\nlog: {level: loud}", "no such level: \"loud\"; hint: debug, info"),
    ("keys: [{fqdn: a.b}]\nlog: {format: xml}", "no such format: \"xml\"; hint: json, text"),
    ("keys: [{fqdn: a.b}", "not YAML"),
    ("keys:\n\t- fqdn: a.b", "line 2: not YAML"),
    ("- a", "the configuration is a list; hint: a mapping is expected"),
    ("just text", "the configuration is a string"),
    ("keys: !!binary aGk=", "the tag"),
    ("? [a, b]\n: c", "a key that is a list"),
    ("keys: [{fqdn: a.b}]\n---\nkeys: []", "line 2: not YAML: a second document"),
    ("keys: &a [*a]", "too large or too deep"),
    ("<<: {keys: []}", "unknown key <<"),
    ("keys: [{fqdn: *nowhere}]", "not YAML"),
    ("{\"\u{0}\": 1}", "not YAML"),
  ]

  @Test(
    "all that is wrong is told at once: keys that no section knows, else values, else what goes not together"
  )
  func several() {
    func lines(_ yaml: String) -> [String] {
      do throws(ConfigurationError) {
        _ = try ServerConfiguration(yaml: Array(yaml.utf8))
        return []
      } catch { return error.description(file: "c.yaml").split(separator: "\n").map(String.init) }
    }
    #expect(
      lines("keys: [{fqdn: a.b}]\nserver: {listn: x}\ntls: {dump: 1s, dir: a, dir: b}") == [
        "c.yaml: line 2: unknown key server.listn; hint: did you mean listen?",
        "c.yaml: line 3: unknown key tls.dump",
        "c.yaml: line 3: tls.dir stands twice; hint: it was first set on line 3; keep one of them",
      ])
    #expect(
      lines("server: {listen: nowhere}\nkeys:\n- fqdn: 12\n- {fqdn: a.b}\n- {fqdn: c.d, prt: 1}")
        .map { $0.prefix(25) } == [
          "c.yaml: line 1: server.li", "c.yaml: line 3: keys[0].f", "c.yaml: line 5: unknown k",
        ])
    #expect(
      lines("keys: [{fqdn: a.b}]\nserver: {certificate: a}\ntls: {quorum: 9}").count == 2)
    #expect(lines("keys: [{fqdn: a.b}]\nserver: {listen: nowhere}").count == 1)
    let many = lines("keys:\n" + String(repeating: "- {fqdn: 12}\n", count: 1000))
    #expect(many.count == 21 && many.last == "and 980 more")
  }

  @Test("refuses with the line, the cause and a hint", arguments: refused)
  func refuses(_ yaml: String, _ message: String) throws {
    let error = #expect(throws: ConfigurationError.self) { try configuration(yaml) }
    #expect(error?.description.contains(message) == true, "\(error?.description ?? "")")
  }

  @Test("a token in place of its id is refused, and not shown")
  func wholeToken() throws {
    let configuration = try configuration(
      "keys: [{fqdn: a.b}]\nserver: {key: a text of the operator's own}")
    let token = try AdminTokenIssuer(configuration).token(for: "alice", at: 0, ttl: 60)
    let error = #expect(throws: ConfigurationError.self) {
      try RegistryServerTests.configuration(
        "keys: [{fqdn: a.b}]\nui: {revoked_tokens: [\(token)]}")
    }
    #expect(error?.description.contains("this is no id, but a token itself") == true)
    #expect(error?.description.contains(token) == false)
  }
}
