/// The rows, in the order in which they are printed.
enum Table {
  static let rows = changes + attacks
  static let changes =
    RotationRows.all + ServerRows.changes + ShippedRows.changes + AbsenceRows.all + ClockRows.all
    + TimeRows.changes + RoadRows.changes
    + LiveRotationRows.all + LiveRegistryRows.all + LiveOutageRows.all + LiveMishapRows.all
    + LiveClockRows.all
    + LiveCrowdRows.changes + LiveMomentRows.changes + LiveNameRows.all
    + LiveStoreRows.changes
  static let attacks =
    MiddlemanRows.all + TimeRows.attacks + ClearTextRows.all + RegistryAttackRows.all
    + TamperingRows.all
    + BodyRows.all + RoadRows.attacks
    + ServerRows.attacks + LiveAttackRows.all + LiveForgeryRows.all
    + LiveCrowdRows.attacks + LiveMomentRows.attacks + LiveStoreRows.attacks
}
