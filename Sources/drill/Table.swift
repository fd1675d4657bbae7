/// The rows, in the order in which they are printed.
enum Table {
  static let rows = changes + attacks
  static let changes: [Row] = RotationRows.all
  static let attacks: [Row] = MiddlemanRows.all + RegistryAttackRows.all + TamperingRows.all
}
