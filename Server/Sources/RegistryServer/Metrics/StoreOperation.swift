/// A kind of call to the store; the label `operation`.
enum StoreOperation: String, CaseIterable, Sendable {
  case record
  case replace
  case history
  case lead
}
