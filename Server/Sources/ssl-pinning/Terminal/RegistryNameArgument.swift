/// `--registry-name`: what key sets and statements carry, so that one registry never passes for
/// another.
enum RegistryNameArgument {
  static let flag = Flag.text(
    "--registry-name", "NAME", "the name that clients expect: the last part of the URL's path")
}
