import RegistryServer
import RegistryStores
import Testing

@Suite("Secrets") struct SecretTests {
  @Test("print as three stars, however they are printed")
  func secret() {
    let secret = Secret("hush")
    let configuration = HTTPConfiguration(key: secret)
    var dumped = ""
    dump(configuration, to: &dumped)
    for text in [
      "\(secret)", String(describing: secret), String(reflecting: secret), "\(configuration)",
      String(reflecting: configuration), "\([secret])", "\(secret as Any)", dumped,
    ] {
      #expect(text.contains("***") && !text.contains("hush"), "\(text)")
    }
    #expect(secret.revealed == "hush")
    #expect(secret == Secret("hush") && secret != Secret("hush2"))
  }

  @Test(
    "are in no print of a whole configuration",
    arguments: [
      StorageConfiguration.redis(dsn: "redis://u:hush@h", pool: ConnectionPoolConfiguration()),
      .postgres(dsn: "host=h password=hush", pool: ConnectionPoolConfiguration()),
    ])
  func configuration(_ storage: StorageConfiguration) {
    let configuration = ServerConfiguration(
      documents: [], server: HTTPConfiguration(key: Secret("hush")), storage: storage)
    var dumped = ""
    dump(configuration, to: &dumped)
    for text in [
      "\(configuration)", String(reflecting: configuration), dumped, "\([storage])",
      "\(configuration as Any)",
    ] {
      #expect(text.contains("***") && !text.contains("hush"), "\(text)")
    }
  }

  @Test(
    "in the name of a data source are masked, and nothing else is",
    arguments: [
      ("redis://user:hush@h:6379/0?db=1", "redis://user:***@h:6379/0?db=1"),
      ("redis://:hush@h", "redis://:***@h"),
      ("redis://user@h:6379", "redis://user@h:6379"),
      ("redis://h:6379/0", "redis://h:6379/0"),
      ("postgres://u:hu@sh:x/y@h/d", "postgres://u:***@h/d"),
      ("postgres://u:hu?sh@h/d?password=hush", "postgres://u:***@h/d?password=***"),
      (
        "postgres://h/d?user=u&password=hush&sslmode=off",
        "postgres://h/d?user=u&password=***&sslmode=off"
      ),
      ("postgres://h/d?PassWord=hush", "postgres://h/d?PassWord=***"),
      ("postgres://h/d?sslpassword=hush#x", "postgres://h/d?sslpassword=***"),
      ("postgres://h/d?user=u&password=hu@sh", "postgres://***"),
      ("postgres://u@h:1/d?password=@hush", "postgres://***"),
      ("postgres://h/d?p%61ssword=hush", "postgres://h/d?p%61ssword=***"),
      ("postgres://u:hu?s=h@h/d", "postgres://***"), ("redis://u@h/0?db=1", "redis://u@h/0?db=1"),
      ("postgres://[::1]:5432,h:1/d", "postgres://[::1]:5432,h:1/d"),
      ("host=h password=hush dbname=d", "host=h password=*** dbname=d"),
      ("password = hush host=h", "password = *** host=h"),
      ("host=h password='hu sh\\' x' port=1", "host=h password=*** port=1"),
      ("password=hu\\ sh host=h", "password=*** host=h"),
      ("password='hush", "password=***"),
      ("host=h passfile=/p user=password", "host=h passfile=/p user=password"),
      ("/var/lib/registry.db", "/var/lib/registry.db"),
      // With a mistake.
      ("postgres:/u:hush@h/d", "***@h/d"), ("postgres//u:hu@sh@h/d", "***@h/d"),
      ("postgres://u:hush#h/d", "postgres://u:***"), ("redis://u:hush", "redis://u:***"),
      ("postgres://h/d?pasword=hush", "postgres://h/d?pasword=***"),
      ("host=h pasword=hush port=1", "host=h pasword=*** port=1"),
      ("host=h password hush", "host=h password ***"), ("password: hush", "password: ***"),
      ("/var/my a:b@c/x=y.db", "/var/my a:b@c/x=y.db"), ("./state/a=b.db", "./state/a=b.db"),
      ("", ""), ("password", "password"), ("=", "="), ("://", "://"), ("password=", "password=***"),
    ])
  func dsn(_ text: String, _ masked: String) {
    #expect(MaskedDSN(text).description == masked)
  }
}
