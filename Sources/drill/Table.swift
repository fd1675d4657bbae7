/// The rows, in the order in which they are printed.
enum Table {
  static let rows = changes + attacks
  static let changes =
    RotationRows.all + ServerRows.changes + ShippedRows.changes + AbsenceRows.all + ClockRows.all
  static let attacks =
    MiddlemanRows.all + ClearTextRows.all + RegistryAttackRows.all + TamperingRows.all
    + BodyRows.all
    + ServerRows.attacks
}
