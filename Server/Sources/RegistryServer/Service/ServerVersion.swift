/// Which version of the server this is.
public enum ServerVersion {
  /// The version, as the tool prints it too.
  public static let current = "0.1.0"
}
